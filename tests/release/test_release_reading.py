"""Files that `Release.write` wrote and `Release.read` reads: equal releases, and errors for everything else."""

import contextlib
import json
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from released import KINDS, counted, named, ranked

import discreet as dp
from discreet import Release
from discreet.errors import DiscreetError, InputError, ParameterError, SchemaError
from discreet.formats import RELEASED
from discreet.theorems.confirmed_counts import levels

WITH_HEADER = [suffix for suffix in RELEASED if suffix not in ("csv", "jsonl")]
FIELDS = ["items", "guarantee", "spent", "calls", "made_by", "stopped_early", "seeded", "clipped", "users", "round"]
FIELDS += ["above", "item_type", "noise", "ranked", "version"]
SPENT = dp.ConfirmedCounts(rho=0.02, delta=1e-6).guarantee
OTHERS = [b"", b"\xff\xfe", b"{", b"[]", b"null", b"[" * 100_000, b"a" * 100_000, b'{"rows": []}', b"PAR1PAR1"]


def require_equal(found, release):
    for name in FIELDS:
        assert getattr(found, name) == getattr(release, name), name
    for name in ("counts", "sigmas"):
        ours, theirs = getattr(release, name), getattr(found, name)
        assert (ours is None) == (theirs is None)
        assert ours is None or (ours.tolist() == theirs.tolist() and ours.dtype == theirs.dtype)
    assert found.digest == release.digest
    assert found.notes[:-1] == release.notes
    assert found.claimed
    assert found.promise == f"claimed by a file: {release.promise}"


@pytest.mark.parametrize("suffix", RELEASED)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("make", [counted, ranked, named])
def test_a_written_release_is_read_with_all_its_fields(tmp_path, suffix, kind, make):
    path = tmp_path / f"it's.{suffix}"
    for release in (make(kind), make(kind)[1:], make(kind)[:0]):
        release.write(path, certificate=True)
        found = Release.read(path)
        require_equal(found, release)
        assert "its rows match its certificate" in found.notes[-1]


@pytest.mark.parametrize("call", [dp.count, dp.top_k, dp.select, dp.sum, dp.aggregate])
def test_a_release_that_is_asked_for_in_epsilon_has_its_cost_in_files(tmp_path, call):
    log = {"user": [*range(3000)], "item": ["a"] * 3000, "n": [1] * 3000}
    more = {dp.top_k: {"k": 1}, dp.sum: {"value": "n", "bounds": (0, 1)}, dp.aggregate: {"rows": 1}}.get(call, {})
    release = call(log, user="user", item="item", epsilon=0.7, delta=1e-6, **more)
    for suffix in RELEASED:
        release.write(tmp_path / f"rows.{suffix}", certificate=True)
        found = Release.read(tmp_path / f"rows.{suffix}")
        assert (found.guarantee, found.spent) == (release.guarantee, release.spent)


@pytest.mark.parametrize("suffix", WITH_HEADER)
@pytest.mark.parametrize("kind", KINDS)
def test_a_header_suffices_and_the_release_says_that_nothing_verifies_it(tmp_path, suffix, kind):
    path = tmp_path / f"rows.{suffix}"
    for release in (counted(kind), ranked(kind)[1:], named(kind), counted(kind)[:0]):
        release.write(path)
        require_equal(Release.read(str(path)), release)
        assert "nothing shows whether rows were changed" in Release.read(path).notes[-1]


COLUMNS = [
    ((("country", "string"), ("size", "int64")), [("=1", 3), ("", -1), ("'quoted", 3)]),
    (
        (("day", "date"), ("raw", "binary"), ("open", "bool")),
        [("2026-01-31", b"\xff\\", "true"), ("0001-01-01", b"=", "false")],
    ),
    ((("hour", "timestamp[us, UTC]"),), ["2026-01-31T10:00:00Z", "2026-01-31T10:00:00.000001Z"]),
    ((("hour", "timestamp[ns]"), ("big", "uint64")), [("2026-01-31T10:00:00.000000001", 2**64 - 1)]),
    ((("first", "timestamp[ns]"),), ["1677-09-21T00:12:43.145224193", "2262-04-11T23:47:16.854775807"]),
    ((("zoned", "timestamp[ns, UTC]"),), ["1677-09-21T00:12:43.145224193Z", "2262-04-11T23:47:16.854775807Z"]),
    (
        (("time", "timestamp[us]"), ("low", "int64")),
        [("0001-01-01T00:00:00", -(2**63)), ("9999-12-31T23:59:59.999999", 0)],
    ),
    (
        (("text", "string"), ("raw", "binary")),
        [("\x00", b"\x00"), ("x" * 70_000, b""), ("\U0010ffff\r", b"\xed\xa0\x80")],
    ),
]


@pytest.mark.parametrize("suffix", RELEASED)
@pytest.mark.parametrize("kind, items", COLUMNS)
def test_items_of_several_columns_are_read_with_their_types(tmp_path, suffix, kind, items):
    path = tmp_path / f"rows.{suffix}"
    for release in (counted(kind, items=items), counted(kind, items=[])):
        release.write(path, certificate=True)
        require_equal(Release.read(path), release)


@pytest.mark.parametrize("kind, items", COLUMNS)
def test_frames_hold_the_items_of_each_type_unchanged(kind, items):
    pyarrow, pandas = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    release = counted(kind, items=items)
    table, frame = release.to_arrow(), release.to_pandas()
    for name, cells, one in release.columns[: len(kind)]:
        if one.startswith("timestamp"):
            unit, texts = one[10:12], [text.removesuffix("Z") for text in cells]
            exact = np.array(texts, f"datetime64[{unit}]").astype(np.int64).tolist()
            assert table[name].cast(pyarrow.int64()).to_pylist() == exact
            assert frame[name].astype("int64").tolist() == exact
            assert not frame[name].isna().any()
        elif one not in ("date", "bool"):
            assert table[name].to_pylist() == [*cells] == frame[name].tolist()
        else:
            assert pandas.Series(frame[name].astype(str).str.lower()).str[:10].tolist() == [*cells]


TYPED = {
    "date": st.dates().map(str),
    "timestamp[us]": st.datetimes().map(lambda time: time.isoformat()),
    "timestamp[ns]": st.integers(1 - 2**63, 2**63 - 1).map(lambda time: dp_text(time)),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "uint64": st.integers(0, 2**64 - 1),
    "string": st.text(max_size=9),
    "binary": st.binary(max_size=9),
}


def dp_text(nanos):
    """Return nanoseconds since 1970 as releases write them: without a fraction, or with six or nine digits."""
    whole, _, fraction = str(np.datetime64(nanos, "ns")).partition(".")
    digits = fraction.removesuffix("000") if fraction.endswith("000") else fraction
    return whole if not int(fraction) else f"{whole}.{digits}"


@settings(max_examples=5, deadline=None)
@given(st.lists(st.tuples(*TYPED.values()), unique=True, max_size=4))
@example([("0001-01-01", "0001-01-01T00:00:00", dp_text(1 - 2**63), -(2**63), 2**64 - 1, "", b"")])
@example([("9999-12-31", "9999-12-31T23:59:59.999999", dp_text(2**63 - 1), 2**63 - 1, 0, "\x00", b"'")])
def test_items_of_any_value_are_read_and_verified(tmp_path_factory, items):
    folder = tmp_path_factory.mktemp("typed")
    sigmas = np.full(len(items), levels(0.1, factor=1, replaced=False)[0].steps[0].sigma)
    kinds = tuple((kind, kind) for kind in TYPED)
    release = counted(kinds, items=items, sigmas=sigmas, users=None, spent=SPENT, guarantee=SPENT)
    for suffix in RELEASED:
        release.write(folder / f"rows.{suffix}", certificate=True)
        require_equal(Release.read(folder / f"rows.{suffix}"), release)
        assert dp.verify(folder / f"rows.{suffix}").digest == release.digest


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_the_first_and_last_times_of_pandas_are_items(tmp_path, zone):
    pandas = pytest.importorskip("pandas")
    ends = pandas.to_datetime([pandas.Timestamp.min, pandas.Timestamp.max]).tz_localize(zone)
    log = pandas.DataFrame({"user": [*range(3000)] * 2, "time": ends.repeat(3000)})
    release = dp.count(log, user="user", item="time", rho=100, delta=1e-3)
    assert len(release) == 2
    for suffix in RELEASED:
        release.write(tmp_path / f"rows.{suffix}", certificate=True)
        assert Release.read(tmp_path / f"rows.{suffix}").to_dict() == release.to_dict()
        assert dp.verify(tmp_path / f"rows.{suffix}").digest == release.digest


@pytest.mark.parametrize("listed", ["1677-09-21T00:12:43.145224192", "2262-04-11T23:47:16.854775808", "9999-12-31"])
def test_a_listed_time_beyond_nanoseconds_costs_nothing(listed):
    log = {"user": np.arange(9), "time": np.full(9, "2026-01-31", "datetime64[ns]")}
    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises(SchemaError, match=r"does not fit a column of the type timestamp\[ns\]"):
        dp.count(log, user="user", item="time", rho=1, delta=1e-6, l0=1, items=[listed], budget=budget)
    assert budget.spent.rho == 0


@pytest.mark.parametrize(
    "kind, cell",
    [
        ("date", "2026-02-30"),
        ("date", "20260131"),
        ("bool", "True"),
        ("timestamp[us]", "infinity"),
        ("timestamp[us]", "2026-01-31T24:00:00"),
        ("timestamp[us]", "2026-01-31T10:00:00.000000001"),
        ("timestamp[ns]", "9999-12-31T00:00:00"),
        ("timestamp[us, UTC]", "2026-01-31T10:00:00"),
    ],
)
def test_text_that_is_no_time_is_not_read_as_one(tmp_path, kind, cell):
    counted((("at", kind),), items=[cell]).write(tmp_path / "rows.json")
    with pytest.raises(InputError, match="as a release"):
        Release.read(tmp_path / "rows.json")


@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_rows_alone_need_their_certificate(tmp_path, suffix):
    counted().write(tmp_path / f"rows.{suffix}")
    with pytest.raises(InputError, match=r"has rows alone, and its certificate .* is missing"):
        Release.read(tmp_path / f"rows.{suffix}")


@pytest.mark.parametrize("suffix", RELEASED)
def test_a_real_release_is_read_and_verified(tmp_path, suffix):
    log = {"user": [*range(5000)] * 2, "page": ["home"] * 5000 + ["help"] * 5000}
    for release in (
        dp.count(log, user="user", item="page", epsilon=4, delta=1e-6),
        dp.count(log, user="user", item="page", rho=1, delta=1e-6, l0=1),
        dp.top_k(log, user="user", item="page", k=2, rho=1, delta=1e-6),
    ):
        path = tmp_path / f"rows.{suffix}"
        release.write(path, certificate=True)
        require_equal(Release.read(path), release)
        assert dp.verify(path).digest == release.digest


def test_a_file_cannot_prove_that_it_was_not_seeded(tmp_path):
    counted(seeded=True).write(tmp_path / "rows.json")
    assert Release.read(tmp_path / "rows.json").promise == "no privacy: the randomness was seeded"
    text = (tmp_path / "rows.json").read_text()
    (tmp_path / "rows.json").write_text(text.replace('"seeded": true', '"seeded": false'))
    forged = Release.read(tmp_path / "rows.json")
    assert forged.promise.startswith("claimed by a file: ")
    assert "The guarantee is what the file claims" in repr(forged)
    assert "claimed by a file" in forged._repr_html_()
    with pytest.raises(ParameterError, match="read from a file, so its guarantee is a claim"):
        forged.write(tmp_path / "other.csv", certificate=True)
    forged.write(tmp_path / "other.json")
    assert json.loads((tmp_path / "other.json").read_text())["claimed"] is True
    assert forged[:1].claimed
    table = dp.Histogram.from_counts(["home"], [800], l0=1, linf=1, complete=True)
    assert dp.mechanisms.Refinement(of=forged[:1], rho=0.1).release(table).claimed


def changed(path, before, after):
    content = path.read_bytes()
    assert before in content
    path.write_bytes(content.replace(before, after, 1))


@pytest.mark.parametrize(
    ("suffix", "before", "after"),
    [
        ("csv", b"800,5.0", b"801,5.0"),
        ("csv", b"home", b"hume"),
        ("csv", b"home,800,5.0\n", b""),
        ("csv", b"\n", b"\r\n"),
        ("jsonl", b"800", b"801"),
        ("json", b"800", b"801"),
    ],
)
def test_rows_that_another_program_changed_are_refused(tmp_path, suffix, before, after):
    path = tmp_path / f"rows.{suffix}"
    counted().write(path, certificate=True)
    changed(path, before, after)
    with pytest.raises(InputError, match=r"another program changed|columns of a release"):
        Release.read(path)


def test_a_parquet_file_of_another_program_is_refused(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    path = tmp_path / "rows.parquet"
    counted().write(path, certificate=True)
    frame = pandas.read_parquet(path)
    frame.loc[0, "count"] += 1
    frame.to_parquet(path)
    with pytest.raises(InputError, match="without the metadata of a release"):
        Release.read(path)


@pytest.mark.parametrize("suffix", WITH_HEADER)
def test_a_header_that_contradicts_the_certificate_is_refused(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    counted().write(path, certificate=True)
    place = tmp_path / f"rows.{suffix}.certificate.json"
    changed(place, b'"rho": 0.02', b'"rho": 0.01')
    with pytest.raises(InputError, match="its header and its certificate differ"):
        Release.read(path)


OTHER_COLUMNS = [[], [["item"]], [["count", "string"]], [["item", "float64"]], [[1, "string"]]]
HEADER_CHANGES = {
    "seeded": ["false", 0, None, [], "missing"],
    "clipped": ["x", 1, "missing"],
    "stopped_early": [None, "missing"],
    "rho": [-1, "1", None, math.nan, math.inf, 1e400, True, [], "missing"],
    "delta": [2, "x", None, "missing"],
    "unit": ["person", 3, "missing"],
    "neighbours": ["x", None, "missing"],
    "epsilon": [-1, "x"],
    "spent_rho": [-1, "x", None, math.nan],
    "calls": [-1, 1.5, "x", True, 2**80, "missing"],
    "round": [-1, "x", 2.5],
    "above": [-1, "x", 2.5, True],
    "users": [[1], [1, 2, 3], ["a", "b"], 5, [1, math.nan], [True, 1.0], [2**62, 1.0], {}],
    "notes": ["x", [1], [[]], ["a"] * 2000, "missing"],
    "made_by": [3, None, "x" * 2_000_000, "missing"],
    "version": [3, None, "missing"],
    "item_type": ["float64", 3, None, "int64", "uint64", "missing", *OTHER_COLUMNS],
    "noise": ["cauchy", None, [], "missing"],
    "l0": [0, -1, 2**80, True, 1.0, "1"],
    "kept_share": [[0.5, 0.1], [0.5], "ab", {"a": 1}, 3, {}],
    "every": ["1d", "1d<", ["1d"], {}],
    "rows": [
        None,
        3,
        {},
        [3],
        [[]],
        [{}],
        [{"item": "a"}, {"item": "a"}],
        [{"item": "a"}, {"items": "b"}],
        [{"item": 3, "count": 1, "sigma": 1.0}],
        [{"item": None, "count": 1, "sigma": 1.0}],
        [{"item": "a", "count": 1.5, "sigma": 1.0}],
        [{"item": "a", "count": True, "sigma": 1.0}],
        [{"item": "a", "count": 2**70, "sigma": 1.0}],
        [{"item": "a", "count": 2**62, "sigma": 1.0}],
        [{"item": "a", "count": -(2**62), "sigma": 1.0}],
        [{"item": "a", "count": 1, "sigma": 1e18}],
        [{"item": "a", "count": 1, "sigma": -1.0}],
        [{"item": "a", "count": 1, "sigma": math.nan}],
        [{"item": "a", "count": 1, "sigma": "1"}],
        [{"item": "a", "count": 1}],
        [{"item": "a", "rank": 0}],
        [{"item": "a", "rank": 2}, {"item": "b", "rank": 2}],
        [{"item": "\ud800", "count": 1, "sigma": 1.0}],
        [{"count": 1, "sigma": 1.0}],
    ],
}


SHARES = [[0.9, 0.9], [0.9, 0], [1.1, 0.1], [-0.1, 0.1], [math.nan, 0.1], [0.9, math.nan], [True, 0.1], [0.5, True]]
SHARES += [[0.5, "a"], ["a", 0.1]]


@pytest.mark.parametrize(
    "change",
    [
        *({"kept_share": share} for share in SHARES),
        {"l0": None},
        {"l0": 1001},
        {"l0": 0},
    ],
)
def test_an_impossible_bound_or_share_is_neither_read_nor_verified(tmp_path, change):
    path = tmp_path / "rows.csv"
    log = {"user": [*range(5000)] * 2, "item": ["a"] * 5000 + ["b"] * 5000}
    dp.count(log, user="user", item="item", rho=1, delta=1e-6, l0="auto").write(path, certificate=True)
    assert Release.read(path).kept_share is not None
    assert dp.verify(path).made_by.startswith("CountsWithFoundBound")
    certificate = tmp_path / "rows.csv.certificate.json"
    certificate.write_text(json.dumps({**json.loads(certificate.read_text()), **change}))
    with pytest.raises(InputError, match=r"l0|share"):
        dp.verify(path)
    if change != {"l0": 1001}:  # only `verify` makes the mechanism
        with pytest.raises(InputError, match=r"l0|share"):
            Release.read(path)


def test_a_bound_or_a_share_that_the_mechanism_cannot_have_is_not_verified(tmp_path):
    path = tmp_path / "rows.csv"
    log = {"user": range(5000), "item": ["a"] * 5000}
    dp.count(log, user="user", item="item", rho=1, delta=1e-6, l0=1).write(path, certificate=True)
    certificate = tmp_path / "rows.csv.certificate.json"
    content = json.loads(certificate.read_text())
    assert "GaussianThreshold" in content["made_by"]
    for change, text in (({"l0": 7}, "at most 1 item "), ({"kept_share": [0.999, 1e-4]}, "kept_share")):
        certificate.write_text(json.dumps({**content, **change}))
        with pytest.raises(InputError, match=text):
            dp.verify(path)


@pytest.mark.parametrize("name", HEADER_CHANGES)
def test_invalid_headers_and_rows_are_input_errors(tmp_path, name):
    path = tmp_path / "rows.json"
    counted().write(path)
    content = json.loads(path.read_text())
    for value in HEADER_CHANGES[name]:
        header = {**content, name: value}
        if value == "missing":
            del header[name]
        path.write_text(json.dumps(header))
        with pytest.raises(InputError, match="as a release"):
            Release.read(path)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("sigma", [0.0, 5e-324, 1e-9, 3, 9.9e17])
@pytest.mark.parametrize("above", [None, 0, 2**62 - 1])
def test_the_largest_numbers_of_a_file_have_intervals(tmp_path, noise, sigma, above):
    counts, path = [2**62 - 1, 2**53, 1, 0, -(2**62) + 1], tmp_path / "rows.json"
    kind = dp.mechanisms.GaussianCounts if noise == "gaussian" else dp.mechanisms.LaplaceCounts
    made_by = repr(kind(items=("a",), **{"sigma" if noise == "gaussian" else "scale": 1.0}))
    more = {"items": [*"abcde"], "sigmas": np.full(5, sigma), "above": above, "noise": noise, "listed": "all"}
    counted(**more, counts=np.array(counts), made_by=made_by).write(path)
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "users": [2**62 - 1, 9.9e17]}))
    found = Release.read(path)
    for confidence in (1e-9, 0.95, math.nextafter(1, 0)):
        ends = found.interval(confidence)
        assert np.all((ends["low"] >= 0) & (ends["low"] <= ends["high"]))
        assert np.all(ends["high"] >= np.maximum(counts, 0))
    found.write(tmp_path / "rows.html")
    assert found.compare(found, 0.95).differences == [0] * 5


@pytest.mark.parametrize("suffix", RELEASED)
@pytest.mark.parametrize("content", OTHERS)
def test_other_files_are_input_errors(tmp_path, suffix, content):
    path = tmp_path / f"rows.{suffix}"
    path.write_bytes(content)
    with pytest.raises(InputError):
        Release.read(path)
    counted().write(tmp_path / f"true.{suffix}", certificate=True)
    (tmp_path / f"true.{suffix}.certificate.json").rename(tmp_path / f"rows.{suffix}.certificate.json")
    with pytest.raises(InputError):
        Release.read(path)


def test_missing_files_folders_and_other_suffixes(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        Release.read(tmp_path / "none.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="no such file"):
        Release.read(tmp_path / "folder.csv")
    counted().write(tmp_path / "report.html")
    for name in ("report.html", "rows.xlsx", "rows"):
        with pytest.raises(ParameterError, match="suffix"):
            Release.read(tmp_path / name)


def test_texts_of_a_file_cannot_change_a_terminal(tmp_path):
    path = tmp_path / "rows.json"
    counted(notes=("\x1b[2Jnote\u202e",), made_by="Evil(\x1b[31m)").write(path)
    shown = repr(Release.read(path))
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@settings(max_examples=8, deadline=None)
@given(st.lists(st.text(max_size=8), unique=True, max_size=6))
def test_any_labels_are_read_as_they_were(tmp_path_factory, items):
    items = [item.encode("utf-8", "ignore").decode() for item in items]
    items = [*dict.fromkeys(items)]
    folder = tmp_path_factory.mktemp("labels")
    for suffix in RELEASED:
        for kind, labels in (("string", items), ("binary", [item.encode("utf-16") for item in items])):
            release = counted(kind, items=labels, counts=np.arange(len(labels)), sigmas=np.full(len(labels), 0.1))
            release.write(folder / f"rows.{suffix}", certificate=True)
            assert Release.read(folder / f"rows.{suffix}").items == labels


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.integers(0, 400), st.sampled_from([*RELEASED]))
@example(b"\x80", 329, "parquet")  # a column name that is not UTF-8
def test_damage_is_an_error_or_changes_nothing(tmp_path_factory, noise, place, suffix):
    folder = tmp_path_factory.mktemp("damage")
    path = folder / f"rows.{suffix}"
    counted().write(path, certificate=True)
    content = path.read_bytes()
    path.write_bytes(content[:place] + noise + content[place + len(noise) :])
    with contextlib.suppress(DiscreetError):
        assert Release.read(path).digest == counted().digest
