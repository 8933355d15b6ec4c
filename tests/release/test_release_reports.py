"""Reports: one HTML file that loads nothing, runs nothing and shows any label as text."""

import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from released import counted, named, ranked

import discreet as dp
from discreet.errors import InputError, ParameterError

EVIL = [
    "<script>alert(1)</script>",
    "</td></table></svg><img src=x onerror=alert(1)>",
    "\" onload='alert(1)'",
    "\u202ereversed\u2066",
    "\x00\x1b[31m\u2028",
    "x" * 1_000_000,
    "&lt;b&gt; &amp;",
    "שלום",
    "",
]
NO_END = {"meta", "rect", "line"}


class Page(HTMLParser):
    """The elements, attributes and text of a page; it raises if elements do not nest."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in NO_END:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def report(release, tmp_path):
    release.write(tmp_path / "report.html")
    return (tmp_path / "report.html").read_bytes().decode("utf-8")


def releases():
    return {
        "counted": counted(items=EVIL),
        "clipped": counted(
            items=EVIL,
            clipped=True,
            l0=2,
            notes=("counts of users clipped to 2 items each; sigma is the noise alone",),
        ),
        "ranked": ranked(items=EVIL),
        "named": named(items=EVIL),
        "empty": counted(items=[]),
        "integers": counted("int64"),
        "bytes": counted("binary"),
        "seeded": counted(seeded=True),
        "claimed": counted(claimed=True),
        "negative": counted(items=["a", "b"], counts=np.array([0, -5])),
        "event": counted(guarantee=dp.Guarantee(1, 0, unit="event", neighbours="replaced")),
        "day": counted(guarantee=dp.Guarantee(1, 0, unit="user-day")),
        "zcdp alone": counted(guarantee=dp.Guarantee(5000, 0.6)),
    }


@pytest.mark.parametrize("name", releases())
def test_a_page_has_no_scripts_and_loads_nothing(name, tmp_path):
    text = report(releases()[name], tmp_path)
    page = Page(text)
    allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "thead", "tbody", "tr", "th"}
    allowed |= {"td", "bdi", "svg", "text", "tspan", "rect", "line", "div", "dl", "dt", "dd"}
    assert {*page.tags} <= allowed
    names = {attribute for attribute, _ in page.attributes}
    assert not names & {"src", "href", "xlink:href", "srcset", "action", "background", "style"}
    assert not any(attribute.startswith("on") for attribute in names)
    assert ("content", "default-src 'none'; style-src 'unsafe-inline'") in page.attributes
    style = text.partition("<style>")[2].partition("</style>")[0]
    assert "url(" not in style
    assert "@import" not in style
    assert not re.search(r"https?:", text)


def test_labels_are_text(tmp_path):
    text = report(counted(items=EVIL), tmp_path)
    shown = "".join(Page(text).texts)
    for label in EVIL[:3]:
        assert label in shown
    assert "\u202e" not in text
    assert "\\u202ereversed" in shown
    assert "\x00" not in text
    assert "\x1b" not in text
    assert "x" * 121 not in text
    assert len(text) < 50_000


def test_a_page_has_the_rows_intervals_guarantee_and_parameters(tmp_path):
    release = counted(items=["home", "help"], counts=np.array([12_345, 678]))
    shown = " ".join(Page(report(release, tmp_path)).texts)
    for part in (
        "2 items: counts of users",
        "12,345",
        "12,335 – 12,355",
        "95% interval",
        release.promise,
        str(release.guarantee),
        release.made_by,
        "How to read it",
        "5,000 (sigma 7.0)",
        "a note",
        dp.__version__,
        "if one user, with all rows of that user, is added to the data or removed from it",
    ):
        assert part in shown, part


@pytest.mark.parametrize("epsilon", [0.2, 0.20001, 1, 3, 7.5, 30])
def test_a_report_rounds_the_factor_of_its_guarantee_up(epsilon, tmp_path):
    log = {"user": [*range(90)], "item": ["a"] * 90}
    made = dp.count(log, user="user", item="item", items=["a"], epsilon=epsilon)
    made.write(tmp_path / "r.html")
    text = (tmp_path / "r.html").read_text()
    factor, shown = re.search(r"a factor of ([0-9.,e+]+) \(e\^epsilon with epsilon = ([0-9.]+)\)", text).groups()
    own = made.guarantee.dp[0]
    assert own <= float(shown) + 1e-12 < own * 1.001
    assert math.exp(own) <= float(factor.replace(",", "")) < math.exp(own) * 1.01


def test_clipped_seeded_and_claimed_releases_say_so(tmp_path):
    made = releases()
    day = " ".join(Page(report(made["day"], tmp_path)).texts)
    for part in (
        "counts of user-days",
        "any single day of a user: all rows of one user in one day in UTC",
        "a user who has rows in many days",
        "if one user in one day, with all rows of that user in that day, is added",
        "one user and day in UTC, added or removed",
        "user-days in the data",
    ):
        assert part in day, part
    clipped = report(made["clipped"], tmp_path)
    assert "Counts of users clipped to 2 items each; sigma is the noise alone. A true count may be far" in clipped
    assert "interval" not in Page(clipped).texts
    assert "No privacy: the randomness was seeded." in report(made["seeded"], tmp_path)
    assert "The guarantee is what the file claims" in report(made["claimed"], tmp_path)
    assert "claims that they are differentially private" in report(made["claimed"], tmp_path)


LEFT_OUT = "Items of few users are left out"
OTHERS_LEFT_OUT = "Other items of few users are left out"
LISTED = "All listed items are published, even items that nobody has."


def counts(**more):
    log = {"user": [*range(3000)] * 2, "page": ["home"] * 3000 + ["help"] * 3000}
    return dp.count(log, user="user", item="page", rho=1, delta=1e-6, **more)


@pytest.mark.parametrize(
    "make, said",
    [
        (lambda: counts(), {LEFT_OUT}),
        (lambda: counts(l0=2), {LEFT_OUT}),
        (lambda: counts(items=["home", "imprint"]), {LISTED}),
        (lambda: counts(items=["home"], others=True, l0=2), {LISTED, OTHERS_LEFT_OUT}),
        (lambda: counts(items=["home"], others=True, l0=2, kept_share=True), {LISTED, OTHERS_LEFT_OUT}),
        (lambda: given_counts(dp.mechanisms.LaplaceCounts(items=("home",), scale=2.0)), {LISTED}),
        (lambda: given_counts(dp.mechanisms.GaussianCounts(items=("home",), sigma=2.0)), {LISTED}),
        (lambda: given_counts(dp.GaussianThreshold(sigma=2.0, delta=1e-6, l0=1)), {LEFT_OUT}),
    ],
)
def test_a_report_says_which_items_are_left_out(make, said, tmp_path):
    release = make()
    release.write(tmp_path / "rows.json")
    for shown in (release, dp.Release.read(tmp_path / "rows.json"), release[:1]):
        text = report(shown, tmp_path)
        assert {part for part in (LEFT_OUT, OTHERS_LEFT_OUT, LISTED) if part in text} == said


def given_counts(mechanism):
    return mechanism.release(dp.Histogram.from_counts(["home"], [9000], l0=1, linf=1, complete=True))


def test_a_long_table_is_cut_and_labels_stay_in_the_engine(tmp_path):
    release = counted("int64", items=[*range(5000)], lazy=True)
    text = report(release, tmp_path)
    assert text.count("<tr>") == 1001
    assert "and 4,000 more" in text
    assert release._labels is not None


def test_a_report_has_no_certificate_and_overwrites_only_if_allowed(tmp_path):
    with pytest.raises(ParameterError, match="a report has no certificate"):
        counted().write(tmp_path / "report.html", certificate=True)
    counted().write(tmp_path / "report.html")
    with pytest.raises(InputError, match="a file of this name has appeared"):
        counted().write(tmp_path / "report.html", overwrite=False)
    counted().write(tmp_path / "report.html")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]
