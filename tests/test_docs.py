"""The README and the docs: documented commands run, figures match the records, and the reference lists public names."""

import importlib
import inspect
import json
import re
import runpy
import shlex
from pathlib import Path

import pytest

import discreet as dp
from discreet import names
from discreet.cli import commands as cli_commands
from discreet.cli import main

ROOT = Path(__file__).resolve().parent.parent
CLUSTER = "--engine spark"


def commands(page):
    """Yield the commands of this library in a page, in order, except those that need a cluster."""
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("discreet ") and CLUSTER not in line:
                yield shlex.split(line, comments=True)[1:]


NUMBERS = {"README.md": 4, "docs/streams.md": 4, "docs/planning.md": 5, "docs/counting.md": 2}
"""The pages whose commands run, and the least number of their commands. conftest.py runs the pages of docs/how-to."""


@pytest.mark.parametrize("page", NUMBERS)
def test_documented_commands_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for name in ("visits", "public_log", "sales"):
        rows = "".join(f"{n},DE,home,a,19.99\n" for n in range(2800))
        Path(f"{name}.csv").write_text("user,country,page,shop,price\n" + rows)
    for month, name in ((1, "january"), (2, "february")):
        rows = "".join(f"{n},home,2026-{month:02d}-{n % 28 + 1:02d}T10:00\n" for n in range(2800))
        Path(f"{name}.csv").write_text("visit,page,when\n" + rows)
    found = list(commands(page))
    assert len(found) >= NUMBERS[page]
    for command in found:
        # There is no terminal to confirm that a column of text holds times.
        yes = ["--yes"] if "--time" in command else []
        with pytest.raises(SystemExit) as ended:
            main([*command, *yes])
        assert ended.value.code == 0, (command, capsys.readouterr().err)


def listed():
    """Return the names in the reference of docs/reference.md. Names of the package itself have no dots."""
    found = re.findall(r"^   (discreet\.[\w.]+)$", (ROOT / "docs" / "reference.md").read_text("utf-8"), re.MULTILINE)
    return [name.removeprefix("discreet.") if name.count(".") == 1 else name for name in found]


LINK = re.compile(r"\]\(([^)#\s]+\.\w+)(#[^)\s]*)?\)|^:link: (\S+)$", re.MULTILINE)


@pytest.mark.parametrize("page", [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")], ids=lambda page: page.name)
def test_relative_links_of_a_page_resolve(page):
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    targets = [first or second for first, _, second in LINK.findall(text)]
    files = [page.parent / target for target in targets if "://" not in target]
    missing = [file for file in files if not file.exists() and not Path(f"{file}.md").exists()]
    assert missing == []


def test_the_changelog_begins_with_unreleased_and_this_version():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert headings[0] == "Unreleased"
    numbers, _, after_release = dp.__version__.partition("-dev")
    released = re.fullmatch(r"(\d+\.\d+\.\d+) - \d{4}-\d\d-\d\d", headings[1])[1]
    # Between releases the version is that of the next one, so that a certificate says which words it has.
    assert (released != numbers) == dp.__version__.endswith("-dev")
    assert not after_release


def test_the_reference_lists_the_names_of_the_package_once():
    found = listed()
    assert len(found) == len({*found})
    assert sorted(name for name in found if "." not in name) == [name for name in dp.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", names.MODULES)
def test_the_reference_lists_every_public_name_of_a_module(name):
    module = importlib.import_module(f"discreet.{name}")
    public = {member for member in module.__all__ if not inspect.ismodule(getattr(module, member))}
    assert public
    full = {f"discreet.{name}.{member}" for member in public - {*dp.__all__}}
    assert full - {*listed()} == set()
    assert all(getattr(dp, member) is getattr(module, member) for member in public & {*dp.__all__})


def test_dir_of_the_package_shows_only_public_names():
    shown = set(dir(dp)) - set(dp.__all__)
    assert shown == {*names.MODULES}
    for name in shown:
        assert inspect.ismodule(getattr(dp, name))


@pytest.mark.parametrize("module", sorted(names.MOVED))
def test_a_moved_name_warns_with_its_new_place(module):
    for name in names.MOVED[module].split():
        with pytest.warns(DeprecationWarning, match=f"discreet.{module}.{name} now"):
            moved = getattr(dp, name)
        assert moved is getattr(importlib.import_module(f"discreet.{module}"), name)
        assert name not in dir(dp)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        dp.nothing  # noqa: B018


def pages_with_figures():
    """Return the text of the pages that quote records."""
    pages = ("README.md", "docs/benchmarks.md", "docs/counting-internals.md")
    return "\n".join((ROOT / page).read_text("utf-8") for page in pages)


def rows_of(first):
    """Return the cells of the table with this first header, by their first cell."""
    table = pages_with_figures().partition(f"| {first} |")[2].partition("\n\n")[0]
    rows = ([cell.strip() for cell in line.strip("| ").split("|")] for line in table.splitlines()[2:])
    return {row[0]: row[1:] for row in rows}


def record(name):
    return json.loads((ROOT / "benches" / "record" / f"{name}.json").read_text("utf-8"))


def number(cell):
    return float(re.sub(r"[^0-9.]", "", cell))


def test_counting_figures_match_the_record():
    shown, cases = rows_of("rows"), record("count")["cases"]
    assert set(shown) == set(cases)
    for name, cells in shown.items():
        ratios = cases[name]["best_peer_over_core"]
        ours = next(iter(cases[name]["medians"].values()))
        found = ours["wall"], ratios["wall"], ours["wall_again"], ratios["wall_again"], ratios["extra"]
        for cell, value, unit in zip(cells, found, (0.01, 0.1, 0.01, 0.1, 0.1), strict=True):
            assert abs(number(cell) - value) <= 0.51 * unit, (name, cell, value)


def test_noise_figures_match_the_record():
    cases = record("noise")["cases"]
    for name, (ours, theirs, *_) in rows_of("draw").items():
        case = cases[re.sub(r"\d[\d,]*$", lambda digits: f"{number(digits[0]):g}", name)]["nanoseconds"]
        peer, ratio = theirs.split()
        assert abs(number(ours) - case["core"]) <= 0.051
        assert abs(number(ratio) - case[f"numpy {peer}"] / case["core"]) <= 0.051


def seconds(cell):
    value, unit = cell.split()
    return float(value) * {"ms": 1e-3, "s": 1}[unit]


def test_figures_of_calls_match_the_record():
    recorded = record("api")["rows"]
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    for name, contestants in ((name, row) for rows in recorded.values() for name, row in rows.items()):
        (found,) = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", page, re.MULTILINE)
        shown, peer, ratio = (cell.strip() for cell in found.split("|"))
        ours = contestants["discreet"]["cpu"]
        assert seconds(shown) == pytest.approx(ours, rel=0.006)
        peers = {other: times["cpu"] for other, times in contestants.items() if other != "discreet"}
        best = min(peers, key=peers.get, default="")
        assert peer == best.replace("_", " ")
        assert not peers or float(ratio) == pytest.approx(peers[best] / ours, rel=0.06)


def test_figures_of_large_files_match_the_record():
    page = (ROOT / "docs" / "benchmarks.md").read_text("utf-8")
    for rows, contestants in record("scale")["rows"].items():
        (found,) = re.findall(rf"^\| {int(rows):,} \|(.*)\|$", page, re.MULTILINE)
        for cell, name in zip(found.split("|"), ("discreet", "discreet, l0=10", "duckdb"), strict=True):
            wall, cpu, peak = re.findall(r"[\d.]+", cell)
            times = contestants[name]
            assert float(wall) == pytest.approx(times["wall"], rel=0.06)
            assert float(cpu) == pytest.approx(times["cpu"], rel=0.06)
            assert float(peak) == pytest.approx(times["peak"] / 1e9, rel=0.06)


def numbers_in(sentence):
    """Return the numbers in a sentence of the pages. In the sentence, # is any number and ... is any text."""
    pattern = re.escape(sentence).replace("\\#", r"([\d,.]*\d)").replace(re.escape("..."), ".*?")
    found = re.search(pattern.replace(r"\ ", " "), " ".join(pages_with_figures().split()))
    assert found, sentence
    return found.groups()


def of_a_file():
    medians = record("file_to_release")["medians"]
    for library in ("discreet", "polars", "duckdb"):
        runs = [run for name, run in medians.items() if name.startswith(library)]
        yield from (min(run["wall"] for run in runs), min(run["peak"] for run in runs) / 1e6)


def of_a_release():
    found = record("private_count_release")
    return [1000 * found["medians_seconds"]["test_core"], found["reference_over_core"]]


def of_selections():
    for case in record("selection")["cases"].values():
        yield from (1000 * case["median_seconds"]["core"], case["numpy_over_core"])


def of_rows_to_a_release():
    medians = record("private_count_release")["medians_seconds"]
    yield 1000 * medians["test_rows_to_release"]
    yield from (1000 * medians[f"test_rows_to_plume[{by}]"] for by in ("threshold", "weighted_gaussian", "dp_sips"))


def of_selections_for_rho():
    both = [case["median_seconds"] for case in record("selection")["for_rho"].values()]
    return [1000 * case[who] for who in ("optimal", "gaussian") for case in both]


def of_memory():
    for case in record("memory")["cases"]:
        if case["items"] == "few":
            for name in ("core", "duckdb"):
                yield from (case["runs"][name]["wall"], case["runs"][name]["extra"] / 2**20)


def of_streams():
    rounds = record("streams")["rounds"].values()
    return [each[name] for each in rounds for name in ("core_ms", "ratio")]


def of_many_rows():
    cases = record("count_1e8")["cases"]
    for case in cases.values():
        yield from (case["medians"]["core"]["wall"], *(case["best_peer_over_core"][name] for name in ("wall", "extra")))


def of_a_limit():
    return [record("count_1e8")["cases"]["integers, ten rows each"]["medians"]["core_in_256_mib"]["wall"]]


def of_a_sort():
    medians = record("count")["cases"]["integers, dense"]["medians"]
    return [medians["numpy_packed"]["wall_again"] / medians["core"]["wall_again"]]


@pytest.mark.parametrize(
    ("sentence", "recorded"),
    [
        ("| discreet | # s | # MB | | polars | # s | # MB | | DuckDB | # s | # MB |", of_a_file),
        ("| Private Count Release, ... per call | # ms | # |", of_a_release),
        (
            "| optimal partition selection ... form | # ms | # | | Gaussian ... items | # ms | # | "
            "| the 10,001 largest ... `np.argpartition` | # ms | # |",
            of_selections,
        ),
        (
            "Private Count Release takes # ms of CPU time. Plume takes # ms with a threshold, # ms with a weighted "
            "Gaussian set union, and # ms with DP-SIPS",
            of_rows_to_a_release,
        ),
        (
            "takes # ms of CPU time to make and # ms to release from 10 million items. "
            "`GaussianThreshold.from_rho` takes # ms and # ms",
            of_selections_for_rho,
        ),
        ("in 256 MiB | # s, # MiB | # s, # MiB | | ... in 2 GiB | # s, # MiB | # s, # MiB |", of_memory),
        (
            "middle of a million rounds | # ms | # | | ... a million items | # ms | # | "
            "| ... root mechanism | # ms | # | | ... epoch mechanism | # ms | # |",
            of_streams,
        ),
        ("| ten rows each | # s | # | # | | dense | # s | # | # | | few | # s | # | # |", of_many_rows),
        ("limit of 256 MiB, the first case takes # s", of_a_limit),
        ("sorts these integers takes # times as long", of_a_sort),
        ("passed # tests of fit", lambda: [record("goodness")["tests"]]),
    ],
)
def test_sentences_match_the_records(sentence, recorded):
    for text, value in zip(numbers_in(sentence), recorded(), strict=True):
        unit = 10.0 ** -len(text.partition(".")[2])
        assert abs(number(text) - value) <= 0.51 * unit, (text, value)


def test_the_map_of_mechanisms_names_each_with_its_files():
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    rows = [line.split("|")[1:-1] for line in page.split("## Where a mechanism is")[1].split("\n## ")[0].splitlines()]
    python = ROOT / "python" / "discreet"
    folders = ([], [python / "theorems"], [python / "reference"], [ROOT / "rust"], [python, ROOT / "tests"])
    for row in filter(None, rows):
        for cell, places in zip(row, [*folders, folders[-1]], strict=True):
            for file in re.findall(r"`([a-z0-9_/]+\.(?:py|rs))`", cell):
                assert any((place / file).is_file() for place in places), (row[0], file)
    named = {name for row in filter(None, rows) for name in re.findall(r"`(\w+)`", row[0])}
    for room in (dp.mechanisms, dp.queries, dp.streams):
        made = {name for name in room.__all__ if hasattr(getattr(room, name), "guarantee") and name != "Stream"}
        made = {name for name in made if not inspect.isabstract(getattr(room, name))}
        assert made - {"Answers", "Crossing"} <= named, made - named


def commands_of(command, path):
    """Yield a command and those of its group, by their names."""
    yield path, command
    for name, own in getattr(command, "commands", {}).items():
        yield from commands_of(own, f"{path} {name}")


def test_no_help_of_a_command_has_a_placeholder():
    made = [(name, getattr(cli_commands, name.replace("-", "_"))) for name in cli_commands.SUMMARIES]
    found = dict(pair for name, command in made for pair in commands_of(command, name))
    assert {"count", "stream step", "budget export"} <= {*found}
    for path, command in found.items():
        texts = [command.help, command.short_help, *(getattr(one, "help", None) for one in command.params)]
        assert [text for text in texts if text and re.search(r"\{|\]\(|\.md\)", text)] == [], path
    assert "CSV" in found["count"].help


@pytest.mark.parametrize("name", sorted({*names.MODULES, "discreet"}))
def test_no_public_docstring_has_a_link_of_markdown(name):
    module = dp if name == "discreet" else importlib.import_module(f"discreet.{name}")
    for member in module.__all__:
        value = getattr(module, member)
        parts = [value, *vars(value).values()] if inspect.isclass(value) else [value]
        texts = [text for part in parts if isinstance(text := getattr(part, "__doc__", None), str)]
        prose = re.sub(r"^ *(>>>|\.\.\.) .*$", "", "\n".join(texts), flags=re.MULTILINE)
        assert re.findall(r"\]\(\S*\)", prose) == []
        for page in re.findall(r"docs/[\w/-]+\.md", "".join(texts)):
            assert (ROOT / page).exists(), page


@pytest.mark.parametrize("page", sorted(ROOT.glob("docs/**/*.md")), ids=lambda page: page.name)
def test_every_picture_of_a_page_has_a_text(page):
    block = r"((?:^<!-- .*? -->\n)*)^```python\n(.*?)^```$"
    drawn = re.findall(block, page.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    blocks = [comments for comments, code in drawn if "plt.show()" in code or ".plot(" in code]
    assert [one for one in blocks if "<!-- picture: next " not in one and "skip: next -->" not in one] == []


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("<p>FILE is a {data} file</p>", ["FILE is a {data} file"]),
        ("<p>See [jobs](../how-to/job.md).</p>", ["See [jobs](../how-to/job.md)."]),
        ("<p>the theorem (docs/counts.md) holds</p>", ["the theorem (docs/counts.md) holds"]),
        ("<pre>{'a': 1}</pre><p>a <code>{b}</code><br> c</p><dt>f(a={})</dt><script>if (a) {b}</script>", []),
        ("<img src='a/f.png' alt='a/f.png'>", ["a picture whose text is the name of its file: a/f.png"]),
        ("<img src='a/f.png' alt='Counts and noise'><p>I = {1, ..., B}</p>", []),
    ],
)
def test_the_build_finds_markup_in_pages(page, found):
    markup = runpy.run_path(str(ROOT / "docs" / "built.py"))["markup"]
    assert list(markup(page)) == found
