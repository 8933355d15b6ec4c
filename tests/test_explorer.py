"""The page of sliders that `discreet plan count --html` writes."""

import base64
import hashlib
import json
import math
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from itertools import product

import numpy as np
import pytest
from command import discreet

import discreet as dp
from discreet.planning.candidates import compared
from discreet.planning.explorer import explorer
from discreet.planning.grid import AXES, SHAPE, around, confirmed, grid, thresholded
from discreet.planning.law import Size
from discreet.planning.sources import Drawn

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PROMISE = ("--rho", "1", "--delta", "1e-6")


def starts(program):
    """Return whether a browser starts. The file of an installed program can be a launcher that fails."""
    try:
        return subprocess.run([program, "--version"], capture_output=True, timeout=60).returncode == 0
    except (subprocess.SubprocessError, OSError):
        return False


class Page(HTMLParser):
    """The elements of a page, by tag: their attributes and their text."""

    def __init__(self, text):
        super().__init__()
        self.found, self.open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs), []))
        if tag not in ("meta", "input", "line", "rect"):
            self.open.append(self.found[-1])

    def handle_endtag(self, tag):
        if self.open and self.open[-1][0] == tag:
            self.open.pop()

    def handle_data(self, data):
        for _, _, texts in self.open:
            texts.append(data)

    def all(self, tag, **attributes):
        """Return the attributes and texts of the elements of a tag with these attributes."""
        return [
            (has, "".join(texts))
            for name, has, texts in self.found
            if name == tag and attributes.items() <= has.items()
        ]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "explorer.html"
    code, _, err = discreet("plan", "count", *PROMISE, "--html", str(path))
    assert code == 0, err
    return path.read_text(encoding="utf-8")


def test_the_page_has_a_slider_for_each_parameter_and_two_pictures(text):
    page = Page(text)
    assert page.open == []
    sliders = {has["id"]: float(has["data-value"]) for has, _ in page.all("input", type="range")}
    assert [*sliders] == ["rho", "delta", "l0", "users", "items", "exponent", "items_per_user"]
    assert (sliders["rho"], sliders["users"]) == (1.0, 20_000)
    bounded = [row for row in dp.plan("count", rho=1, delta=1e-6).comparison.rows if row.l0 is not None]
    assert sliders["l0"] == max(bounded, key=lambda row: row.score).l0
    labelled = {has["for"] for has, _ in page.all("label")}
    assert labelled == {*sliders}
    assert {has["id"] for has, _ in page.all("svg", role="img")} == {"named", "noise"}
    ids = [has["id"] for _, has, _ in page.found if "id" in has]
    assert len(ids) == len({*ids})


def test_the_page_loads_nothing_and_its_policy_allows_its_script_alone(text):
    page = Page(text)
    assert not re.search(r"(?:src|href)\s*=|url\(|@import|fetch\(|XMLHttp", text)
    ((policy, _),) = page.all("meta", **{"http-equiv": "Content-Security-Policy"})
    ((_, script),) = [entry for entry in page.all("script") if "type" not in entry[0]]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy["content"] == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    assert len(text) < 1_000_000


def test_the_page_has_the_comparison_of_the_plan_without_a_script(text):
    page = Page(text)
    cells = [value for _, value in page.all("td")]
    for row in dp.plan("count", rho=1, delta=1e-6).comparison.rows:
        place = next(number for number, cell in enumerate(cells) if cell.split(" (")[0] == row.label)
        assert cells[place + 1] == f"{row.items:,}"
        assert cells[place + 3] == f"{row.within:,}"
        assert ("(recommended)" in cells[place]) is row.recommended


def test_the_embedded_grid_has_a_number_for_each_point(text):
    ((_, data),) = Page(text).all("script", type="application/json")
    found = json.loads(data)
    points = math.prod(len(axis) for axis in found["axes"].values())
    assert len(found["threshold"]) == 2 * points
    assert len(found["confirmed"]) == 2 * points // len(found["axes"]["l0"])
    assert min(found["threshold"]) >= 0


def corner(found, kind, point):
    """Return the figures of the grid at a point, as the script finds them."""
    place = 0
    for name, axis in found["axes"].items():
        if name != "l0" or kind == "threshold":
            place = place * len(axis) + axis.index(point[name])
    return found[kind][2 * place : 2 * place + 2]


def between(found, kind, point):
    """Return the interpolated figures at a point, as the script does."""
    corners = [(0, 1.0)]
    for name, axis in found["axes"].items():
        if name == "l0" and kind == "confirmed":
            continue
        scaled = np.array(axis) if name == "exponent" else np.log(axis)
        x = point[name] if name == "exponent" else np.log(point[name])
        i = min(int(np.searchsorted(scaled, x, side="right")) - 1, len(axis) - 2)
        t = (x - scaled[i]) / (scaled[i + 1] - scaled[i])
        corners = [
            (place * len(axis) + i + more, w * (t if more else 1 - t)) for place, w in corners for more in (0, 1)
        ]
    return [math.expm1(sum(w * math.log1p(found[kind][2 * place + part]) for place, w in corners)) for part in (0, 1)]


def test_points_between_the_grid_are_interpolated_well():
    found, random, far, many = grid(0.1), np.random.default_rng(4), 0, 0
    named, close = [], []
    for _ in range(150):
        point = {name: float(np.exp(random.uniform(*np.log(axis[:: len(axis) - 1])))) for name, axis in AXES.items()}
        point["exponent"] = float(random.uniform(AXES["exponent"][0], AXES["exponent"][-1]))
        point["l0"] = round(point["l0"])
        size = Size(*(int(point[name]) for name in ("users", "items")), point["exponent"], point["items_per_user"])
        given = size, point["rho"], point["delta"]
        for kind, exact in (
            ("confirmed", confirmed(*given, 0.1)),
            ("threshold", thresholded(*given, point["l0"], 0.1)),
        ):
            ours, theirs = between(found, kind, point), exact
            if max(ours[0], theirs.items) >= 25:
                many += 1
                named.append(ours[0] / max(theirs.items, 1))
                far += not 1 / 1.5 <= named[-1] <= 1.5
            if kind == "threshold" and max(ours[1], theirs.within) >= 25:
                close.append(ours[1] / max(theirs.within, 1))
    assert many > 200
    assert len(close) > 50
    assert far <= 0.05 * many
    # The page states these two ranges.
    assert np.mean([0.75 <= ratio <= 1.05 for ratio in named]) >= 0.8
    assert np.mean([1 / 3 <= ratio <= 1.05 for ratio in close]) >= 0.8


def test_the_fine_grid_has_every_bound_of_the_table_and_the_numbers_of_the_mechanisms_there(text):
    ((_, data),) = Page(text).all("script", type="application/json")
    found = json.loads(data)["start"]
    compared_rows = [row for row in dp.plan("count", rho=1, delta=1e-6).comparison.rows if row.l0 is not None]
    assert {row.l0 for row in compared_rows} <= {*found["axes"]["l0"]}
    (free,) = [row for row in dp.plan("count", rho=1, delta=1e-6).comparison.rows if row.name == "ConfirmedCounts"]
    assert corner(found, "confirmed", {"rho": 1, "delta": 1e-6}) == pytest.approx([free.items, free.within], rel=0.1)
    for row in compared_rows:
        point = {"rho": 1, "delta": 1e-6, "l0": row.l0}
        items, within = corner(found, "threshold", point)
        assert items == pytest.approx(row.items, rel=0.1)
        assert within == pytest.approx(row.within, rel=0.1, abs=5), row.label


@pytest.mark.parametrize("rho", [0.045, 1.0])
def test_the_fine_grid_is_in_the_order_of_its_axes(rho):
    shape = {"items": 4_000, "exponent": 0.7, "items_per_user": 12.5, "users": 8_000}
    found = around(shape, {"rho": rho, "delta": 3e-7, "l0": 25}, 0.1)
    assert {*found["shape"]} == {*SHAPE}
    for l0 in (1, 25, 300):
        expected = thresholded(Size(8_000, 4_000, 0.7, 12.5), rho, 3e-7, l0, 0.1)
        assert corner(found, "threshold", {"rho": rho, "delta": 3e-7, "l0": l0}) == pytest.approx(expected, abs=0.006)
    expected = confirmed(Size(8_000, 4_000, 0.7, 12.5), rho, 3e-7, 0.1)
    assert corner(found, "confirmed", {"rho": rho, "delta": 3e-7}) == pytest.approx(expected, abs=0.006)


def test_a_page_begins_with_the_best_threshold_if_confirmed_counts_are_recommended():
    plan = dp.plan("count", rho=1, delta=1e-6, like=dp.Shape(3_000, 4_000, 0.4, 300))
    best = max((row for row in plan.comparison.rows if row.l0 is not None), key=lambda row: row.score)
    page = Page(explorer(plan, shape=dp.Shape(3_000, 4_000, 0.4, 300)))
    ((l0, _),) = page.all("input", id="l0")
    assert float(l0["data-value"]) == min(best.l0, AXES["l0"][-1])


def test_a_page_says_that_its_curves_ignore_cutoff_and_spread():
    shape = dp.Shape(users=3_000, items=2_000, exponent=0.5, items_per_user=4, cutoff=3)
    plan = dp.plan("count", rho=1, delta=1e-6, like=shape)
    assert "the cutoff 3 and the spread 1 of the shape" in explorer(plan, shape=shape)


def test_the_grid_is_in_the_order_of_its_axes():
    found = grid(0.1)
    for values in [*product(*(axis[::2] for axis in AXES.values()))][::57]:
        point = dict(zip(AXES, values, strict=True))
        size = Size(int(point["users"]), int(point["items"]), point["exponent"], point["items_per_user"])
        given = size, point["rho"], point["delta"]
        assert corner(found, "confirmed", point) == [round(number) for number in confirmed(*given, 0.1)]
        expected = thresholded(*given, int(point["l0"]), 0.1)
        assert corner(found, "threshold", point) == [round(number) for number in expected]


@pytest.mark.parametrize(
    "shape",
    [
        dp.Shape(20_000, 50_000, 1.0, 20),
        dp.Shape(100_000, 30_000, 0.8, 5),
        dp.Shape(5_000, 1_000, 0.4, 25),
        dp.Shape(200_000, 30_000, 1.2, 1),
    ],
    ids=str,
)
@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_the_numbers_of_the_grid_are_those_of_the_mechanisms(shape, rho):
    size = Size(shape.users, shape.items, shape.exponent, shape.items_per_user)
    rows = {row.label: row for row in compared("count", {"rho": rho, "delta": 1e-7}, Drawn(shape)).rows}
    pairs = [(rows["ConfirmedCounts"], confirmed(size, rho, 1e-7, 0.1))]
    pairs += [
        (rows[f"GaussianThreshold, l0={l0}"], thresholded(size, rho, 1e-7, l0, 0.1))
        for l0 in (1, 10, 100)
        if f"GaussianThreshold, l0={l0}" in rows
    ]
    assert len(pairs) >= 3
    for row, figures in pairs:
        for ours, theirs in ((figures.items, row.items), (figures.within, row.within)):
            if max(ours, theirs) >= 25:
                assert 1 / 1.3 <= ours / max(theirs, 1) <= 1.3, row.label


def test_a_page_begins_with_the_given_shape_and_bound():
    shape = dp.Shape(users=3_000, items=700, exponent=0.5, items_per_user=4)
    page = Page(explorer(dp.plan("count", epsilon=1, delta=1e-6, l0=5, like=shape), shape=shape, l0=5))
    start = {has["id"]: float(has["data-value"]) for has, _ in page.all("input")}
    assert (start["users"], start["l0"], start["exponent"]) == (3_000, 5, 0.5)
    assert start["items"] == AXES["items"][0]  # outside the sliders, so at their end


@pytest.mark.skipif(CHROMIUM is None or not starts(CHROMIUM), reason="needs Chromium")
@pytest.mark.skipif(sys.platform != "linux", reason="uses the options of Chromium on Linux")
@pytest.mark.parametrize("width", [1280, 400])
def test_a_browser_draws_the_curves(text, tmp_path, width):
    file = tmp_path / "explorer.html"
    # Headless windows are at least 500 pixels wide, so the narrow page is in a frame.
    file.write_text(text, encoding="utf-8")
    check = (
        "<script>addEventListener('load', () => {const f = document.getElementById('f').contentDocument;"
        "document.body.dataset.summary = f.getElementById('summary').textContent;"
        "document.body.dataset.curves = f.querySelectorAll('#named path, #noise path').length;"
        "document.body.dataset.wide = f.documentElement.scrollWidth;"
        "const l0 = f.getElementById('l0'), seen = {}; for (const bound of [1, 3, 10, 30, 100]) {"
        "l0.value = Math.round(1000 * Math.log(bound) / Math.log(300)); l0.dispatchEvent(new Event('input'));"
        "seen[bound] = f.getElementById('summary').textContent;} document.body.dataset.bounds = JSON.stringify(seen);"
        "const rho = f.getElementById('rho'); rho.value = 1000; rho.dispatchEvent(new Event('input'));"
        "document.body.dataset.most = f.getElementById('summary').textContent;});</script>"
    )
    frame = f'<body>{check}<iframe id="f" src="explorer.html" style="width:{width}px;height:900px;border:0"></iframe>'
    outer = tmp_path / "frame.html"
    outer.write_text(frame, encoding="utf-8")
    command = [
        CHROMIUM,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--allow-file-access-from-files",
        f"--user-data-dir={tmp_path / 'profile'}",
        "--virtual-time-budget=3000",
        "--dump-dom",
        outer.as_uri(),
    ]
    dom = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    ((body, _),) = Page(dom).all("body")
    numbers = [int(number.replace(",", "")) for number in re.findall(r"about ([\d,]+)", body["data-summary"])]
    rows = {row.label: row for row in dp.plan("count", rho=1, delta=1e-6).comparison.rows}
    expected = [rows["ConfirmedCounts"].items, rows["GaussianThreshold, l0=100"].items]
    assert all(1 / 1.3 < ours / theirs < 1.3 for ours, theirs in zip(numbers, expected, strict=True))
    for bound, summary in json.loads(body["data-bounds"]).items():
        row = rows[f"GaussianThreshold, l0={bound}"]
        found = [int(number.replace(",", "")) for number in re.findall(r"(?:about|,) ([\d,]*\d)", summary)][2:]
        assert f"l0 = {bound} " in summary
        assert found == [pytest.approx(row.items, rel=0.1), pytest.approx(row.within, rel=0.1, abs=5)], summary
    assert int(body["data-curves"]) >= 6
    assert int(body["data-wide"]) <= width
    more = [int(number.replace(",", "")) for number in re.findall(r"about ([\d,]+)", body["data-most"])]
    assert all(after > before for before, after in zip(numbers, more, strict=True))
