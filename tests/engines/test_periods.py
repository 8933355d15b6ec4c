"""Periods of time as a column of the item, and limits of time: read as streams read times."""

import datetime as dt
import json
from collections import Counter

import duckdb
import numpy as np
import pytest
from counting import counted, csv

import discreet as dp
from discreet import _core, engines
from discreet.engines.pairs import read_pairs as pairs_of
from discreet.engines.projection import period_of
from discreet.engines.sums import clipped_sums, items_per_user
from discreet.engines.timed_events import TimedEvents
from discreet.errors import ItemTypeError, ParameterError, SchemaError
from discreet.mechanisms import ContributionBound, Refinement, SetUnion
from discreet.streams.clock import Clock
from discreet.tables import Table, UserItems

pyarrow, polars = map(pytest.importorskip, ("pyarrow", "polars"))
parquet = pytest.importorskip("pyarrow.parquet")
MOMENTS = ["2026-01-31T23:59:59.999999", "2026-02-01T00:00:00", "2026-02-01T12:34:56", "1969-12-31T23:30:00"]
MOMENTS += ["2024-02-29T08:00:00", "2026-01-26T00:00:00", "2026-01-25T23:00:00", "0001-01-01T00:00:00"]
MOMENTS += ["9999-12-31T23:59:59"]
TRUNCATED = {"1h": "hour", "1d": "day", "1w": "week", "1mo": "month"}
UNITS = {f"user-{name}": every for every, name in TRUNCATED.items()}
FORMS = ["parquet", "duckdb", "pyarrow", "polars", "pandas", "dict", "text", "csv"]
TEXTS = [*MOMENTS, "2026-01-31 12:00:00+01:00", "2026-01-31T12:00:00Z", "2026-01-31 12:00:00 +0100", "2026-01-31"]
TEXTS += ["2026-1-5", *(f"2026-01-31T12:00:00{zone}" for zone in ("+18:00", "-18:00", "+19:00")), "yesterday"]
TEXTS += ["", "2026-02-30", "31.01.2026", "2026-01-31T12:00:00+01:60", "2026-01-31T25:00:00", "infinity", "now", " "]
TEXTS += ["2026-01-31 12:00:00 UTC", "2026-01-31T12:00:00.5", "2026-01-31 12:00:00+01", "1700000000", "20260131"]
TEXTS += ["2026-01-31T12:00:00 Europe/Berlin", "2026-01-31 12:00 CET", "2026-01-31 12:00:00 utc", "2026-01-31T12:00 z"]
TEXTS += ["2026-01/31", "2026/01/31 1:05 -0530", *(f"2026-01-31T{time}" for time in ("24:00", "12:00:60", "12", ""))]
TEXTS += ["2026-01-31T12:00:00.", "2026-01-31T12:00:00.1234567891", "2026-01-31T12:00 +01 ", "2026-01-31T12:00+1:00"]
TEXTS += ["2026-01-31\t", "2026-01-31T12:00-18:01", "2026-01-31T12:00+0", "12026-01-31", "2026-01-31T12:00:00 +01:0x"]
TEXTS += ["2026-01-31T12:00", " 2026-01-31 12:00:00 ", "2026/01/31"]


EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def period(every=None, since=None, until=None, column="ts", unit="user"):
    return {"time": column, "every": every, "since": since, "until": until, "unit": unit}


def log(form, tmp_path, moments=MOMENTS):
    users = list(range(len(moments)))
    times = [dt.datetime.fromisoformat(moment) for moment in moments]
    table = pyarrow.table(
        {"user": users, "item": ["a"] * len(users), "ts": pyarrow.array(times, pyarrow.timestamp("us"))}
    )
    stored = str(tmp_path / "log.parquet")
    parquet.write_table(table, stored)
    if form == "csv":
        return str(csv(tmp_path, "user,item,ts\n" + "".join(f"{user},a,{moments[user]}\n" for user in users)))
    return {
        "parquet": stored,
        "duckdb": duckdb.connect().read_parquet(stored),
        "pyarrow": table,
        "polars": polars.from_arrow(table),
        "pandas": table.to_pandas(),
        "dict": {"user": users, "item": ["a"] * len(users), "ts": np.array(moments, "datetime64[us]")},
        "text": {"user": users, "item": ["a"] * len(users), "ts": moments},
    }[form]


def truncated(every, moments=MOMENTS):
    """Return the users of each period, from DuckDB's date_trunc."""
    form = "%Y-%m-%dT%H:%M:%S" if every == "1h" else "%Y-%m-%d"
    start = f"strftime(date_trunc('{TRUNCATED[every]}', m::TIMESTAMP), '{form}')"
    query = f"SELECT {start}, count(*) FROM (SELECT unnest($1) AS m)"
    found = dict(duckdb.connect().execute(f"{query} GROUP BY 1", [moments]).fetchall())
    return {(start, "a"): n for start, n in found.items() if not start.startswith("0000")}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("every", TRUNCATED)
def test_periods_begin_as_in_sql(tmp_path, form, every):
    # The week of 0001-01-01 begins on that Monday.
    assert counted(log(form, tmp_path), **period(every)) == truncated(every)


@pytest.mark.parametrize("form", FORMS)
def test_limits_include_the_first_moment_and_exclude_the_last(tmp_path, form):
    data = log(form, tmp_path)
    assert counted(data, **period(since="2026-02-01")) == {"a": 3}
    assert counted(data, **period(since="2026-02-01", until="2026-02-01T12:34:56")) == {"a": 1}
    assert counted(data, **period("1d", "2026-01-31", "2026-02-01")) == {("2026-01-31", "a"): 1}
    assert counted(data, **period(since="2026-02-01T01:00+01:00", until=dt.date(2026, 2, 2))) == {"a": 2}


def test_text_is_read_as_streams_read_it(tmp_path):
    for text in TEXTS:
        found = counted({"user": [1], "item": ["a"], "ts": [text]}, **period(since="0001-01-01"))
        moment = _core.moment_of(text)
        is_time = moment is not None
        assert bool(found) == is_time, text
        if not is_time:
            for read in (
                lambda text=text: period_of("ts", None, text, None),
                lambda text=text: Clock(since=text, every="1d"),
            ):
                with pytest.raises(ParameterError, match="time"):
                    read()
        if is_time:
            assert period_of("ts", None, text, None).since == moment, text
            assert Clock(since=text, every="1d").begin == EPOCH + dt.timedelta(microseconds=moment), text
            at = EPOCH + dt.timedelta(microseconds=moment)
            only = period(since=at, until=None if at.year == 9999 else at + dt.timedelta(microseconds=1))
            assert counted({"user": [1], "item": ["a"], "ts": [text]}, **only) == {"a": 1}, text
    path = tmp_path / "log.parquet"
    parquet.write_table(pyarrow.table({"user": TEXTS, "item": ["a"] * len(TEXTS), "ts": TEXTS}), path)
    events = TimedEvents(str(path), event="user", item="item", time="ts")
    rows_of = events.rows_by_round(EPOCH.replace(year=1), dt.timedelta(days=4_000_000))
    found = {user for user, _ in rows_of(1).fetchall()}
    assert found == {text for text in TEXTS if _core.moment_of(text) is not None}


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("form", ["parquet", "pyarrow"])
def test_times_out_of_range_are_skipped_without_a_word(tmp_path, unit, zone, form):
    extreme = [2**63 - 1, -(2**63), -(2**63) + 1, 2**62, 0, None]
    cells = pyarrow.array(extreme, pyarrow.int64()).cast(pyarrow.timestamp(unit, zone), safe=False)
    data = pyarrow.table({"user": range(6), "item": ["a"] * 6, "ts": cells})
    if form == "parquet":
        path = tmp_path / "log.parquet"
        seconds = unit == "s"
        if seconds:
            data = data.slice(4)  # Parquet has no seconds, and pyarrow refuses to write these
        parquet.write_table(data, path)
        data = str(path)
    found = counted(data, **period("1d"))
    assert found[("1970-01-01", "a")] == 1
    if unit != "ns":
        assert found == {("1970-01-01", "a"): 1}
        assert counted(data, item="ts") == {f"1970-01-01T00:00:00{'Z' if zone else ''}": 1}


@pytest.mark.parametrize("kind", ["int64", "float64", "bool_", "binary", "time"])
def test_other_types_hold_no_times(kind):
    types = {"time": pyarrow.time64("us")}
    data = pyarrow.table(
        {"user": [1], "item": ["a"], "ts": pyarrow.nulls(1, types.get(kind) or getattr(pyarrow, kind)())}
    )
    with pytest.raises(SchemaError, match="ts"):
        counted(data, **period("1d"))


@pytest.mark.parametrize(
    ("parameters", "error"),
    [
        ((None, "1d", None, None), "need time"),
        (("ts", None, None, None), "time needs"),
        (("ts", "1m", None, None), "every must be"),
        (("ts", "2d", None, None), "every must be"),
        (("ts", None, "yesterday", None), "since must be a time"),
        (("ts", None, "20260131", None), "since must be a time"),
        (("ts", None, "2026-W05-1", None), "since must be a time"),
        (("ts", None, "2026-01-31T12:00 Europe/Berlin", None), "since must be a time"),
        (("ts", None, None, "2026-02-29"), "until must be a time"),
        (("ts", None, 5, None), "since must be a time"),
        (("ts", None, "\ud800", None), "since must be a time"),
        (("ts", None, None, 5), "until must be a time"),
        (("ts", None, "2026-01-02", "2026-01-02"), "until must be later"),
        ((5, "1d", None, None), "name of a column"),
        ((None, None, None, None, "user-day"), "unit='user-day' needs time"),
        (("ts", "1d", None, None, "user-year"), "unit must be"),
        (("ts", "1d", None, None, "event"), "unit must be"),
        (("ts", "1d", None, None, 5), "unit must be"),
        ((None, None, None, None, None), "unit must be"),
    ],
)
def test_parameters_of_time_are_checked(parameters, error):
    with pytest.raises(ParameterError, match=error):
        period_of(*parameters)
    columns = dict(zip(("time", "every", "since", "until", "unit"), parameters, strict=False))
    with pytest.raises(ParameterError, match=error):
        dp.count({}, user="u", item="i", rho=1, delta=1e-6, **columns)


def test_the_column_of_times_is_another_column():
    with pytest.raises(ParameterError, match="different columns"):
        counted({"user": [1], "ts": ["2026-01-01"]}, item="ts", **period("1d"))


N = 4000
LOG = {"user": [n for n in range(N) for _ in range(2)], "page": ["home"] * 2 * N}
LOG["ts"] = ["2026-01-05T10:00", "2026-01-06T10:00"] * N
DAYS = [("2026-01-05", "home"), ("2026-01-06", "home")]


def test_verbs_release_periods_as_the_first_column():
    when = {"user": "user", "item": "page", "time": "ts", "every": "1d", "delta": 1e-6}
    release = dp.count(LOG, **when, rho=1)
    assert sorted(release.items) == DAYS
    assert release.item_type == (("ts", "date"), ("page", "string"))
    assert sorted(dp.count(LOG, **when, rho=1, l0=2).items) == DAYS
    assert sorted(dp.top_k(LOG, **when, rho=1, k=2).items) == DAYS
    assert sorted(dp.top_k(LOG, **when, rho=1, k=2, l0=2, method="discover+peel").items) == DAYS
    assert dp.select(LOG, **when, rho=1, l0=2).items == DAYS
    assert dp.count(LOG, **{**when, "every": "1w"}, rho=1).items == [("2026-01-05", "home")]
    assert dp.count(LOG, **{**when, "every": None}, since="2026-01-06", rho=1).items == ["home"]


def test_all_periods_of_a_user_count_as_items_of_one_user():
    table = dp.Histogram.from_table(LOG, user="user", item="page", **period("1d"), l0=1)
    counts = table._counts()
    assert counts.sum() == N
    lists = UserItems.from_table(LOG, user="user", item="page", **period("1d"))
    assert repr(lists) == "UserItems(SENSITIVE)"


def test_a_table_has_a_period():
    table = Table(LOG, user="user", item="page", **period("1d"))
    assert sorted(dp.Plume(rho=1, delta=1e-6, m=2, m_prime=2).release(table).items) == DAYS
    # A user's items of different days are different items.
    assert ContributionBound(epsilon=50, most=9).release(table).items == [2]
    assert ContributionBound(epsilon=50, most=9, only=(DAYS[0],)).release(table).items == [1]
    with pytest.raises(ItemTypeError, match="list tuples"):
        ContributionBound(epsilon=1, only=("home",)).release(table)


def test_remote_engines_name_a_remedy():
    ibis = pytest.importorskip("ibis")
    table = ibis.duckdb.connect().create_table("log", ibis.memtable(LOG))
    with pytest.raises(ParameterError, match="add a column with the period"):
        counted(table, item="page", **period("1d"))
    with pytest.raises(ParameterError, match="to_pyarrow"):
        counted(table, item="page", **period(unit="user-day"))
    assert counted(table.to_pyarrow(), item="page", **period(unit="user-day")) == {"home": 2 * N}


def visits(form, tmp_path, rows=2000):
    """Return random rows in a form, and the same rows as tuples of a user, another one, a page, a value and a time."""
    rng = np.random.default_rng(rows)
    users, others, pages, values = (rng.integers(0, most, rows).tolist() for most in (9, 3, 4, 4))
    start, seconds = dt.datetime(2025, 12, 20, 23, 30, tzinfo=dt.UTC), rng.integers(0, 4_000_000, rows).tolist()
    times = [None if second % 20 == 0 else start + dt.timedelta(seconds=second) for second in seconds]
    if form == "date":
        times = [time and dt.datetime.combine(time, dt.time(), dt.UTC) for time in times]
    names = [f"p{page}" for page in pages]
    kind = {"date": pyarrow.date32(), "ns": pyarrow.timestamp("ns"), "s": pyarrow.timestamp("s")}
    kind = kind.get(form, pyarrow.timestamp("us", "Europe/Berlin" if form == "zoned" else None))
    whole = pyarrow.array(times, pyarrow.timestamp("us", "UTC")).cast(kind)
    columns = {"user": users, "other": others, "item": names, "value": values, "ts": whole}
    table, path = pyarrow.table(columns), str(tmp_path / f"log.{form}")
    # Missing times are cells of text that is no time.
    texts = ["yesterday" if time is None else time.isoformat() for time in times]
    text = {**columns, "ts": texts}
    if form == "csv":
        lines = [",".join(map(str, row)) for row in zip(*text.values(), strict=True)]
        csv(tmp_path, "\n".join([",".join(text), *lines]))
    if form == "json":
        lines = [dict(zip(text, row, strict=True)) for row in zip(*text.values(), strict=True)]
        (tmp_path / "log.jsonl").write_text("\n".join(map(json.dumps, lines)))
    if form == "parquet":
        parquet.write_table(table, path)
    data = {
        "parquet": path,
        "csv": str(tmp_path / "log.csv"),
        "json": str(tmp_path / "log.jsonl"),
        "text": text,
        "list": [table.slice(0, 700), table.slice(700)],
    }
    if form in ("polars", "pandas"):
        table = polars.from_arrow(table) if form == "polars" else table.to_pandas()
    return data.get(form, table), [*zip(users, others, names, values, times, strict=True)]


PERIODS = {
    "user": lambda time: None,
    "user-hour": lambda time: time.replace(minute=0, second=0),
    "user-day": lambda time: time.date(),
    "user-week": lambda time: time.isocalendar()[:2],
    "user-month": lambda time: (time.year, time.month),
}


def values_of(rows, unit, *, users=1, days=False, since=None):
    """Return the values of each pair of an item and of a user in one period."""
    found = {}
    for *who, item, value, time in rows:
        if time is not None and (since is None or time >= since):
            label = (time.date().isoformat(), item) if days else item
            found.setdefault(((*who[:users], PERIODS[unit](time)), label), []).append(value)
    return found


@pytest.mark.parametrize(
    "form", ["parquet", "csv", "json", "pyarrow", "polars", "pandas", "text", "list", "date", "ns", "s", "zoned"]
)
@pytest.mark.parametrize("unit", UNITS)
def test_a_user_counts_once_in_each_period(tmp_path, form, unit):
    data, rows = visits(form, tmp_path)
    expected = values_of(rows, unit)
    table = engines.Table(data, user="user", item="item", time="ts", unit=unit)
    labels, counts, users = engines.histogram(table, users=True)
    assert dict(zip(labels.to_list(), counts.tolist(), strict=True)) == Counter(item for _, item in expected)
    assert users == len({who for who, _ in expected})


SINCE = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
READS = [
    ({}, {}),
    ({"user": ["user", "other"]}, {"users": 2}),
    ({"since": "2026-01-01"}, {"since": SINCE}),
    ({"every": "1d"}, {"days": True}),
    ({"user": ["user", "other"], "every": "1d", "since": SINCE}, {"users": 2, "days": True, "since": SINCE}),
]


@pytest.mark.parametrize("form", ["pyarrow", "csv"])
@pytest.mark.parametrize("unit", PERIODS)
@pytest.mark.parametrize("read", READS)
def test_bounds_lists_and_sums_are_those_of_a_user_in_one_period(tmp_path, form, unit, read):
    data, rows = visits(form, tmp_path)
    columns = {"user": "user", "item": "item", "time": "ts", "unit": unit, "until": "2100-01-01", **read[0]}
    table, expected = Table(data, **columns), values_of(rows, unit, **read[1])
    numbers = Counter(who for who, _ in expected)
    items = sorted({item for _, item in expected})
    whole = Counter(item for _, item in expected)
    kept = table.read()
    assert (kept.unit, kept.every) == (unit, columns.get("every"))
    for one in (table, kept):
        assert sorted(engines.numbers_of_items(one).tolist()) == sorted(numbers.values())
        assert sorted(items_per_user(one, items[:2]).tolist()) == sorted(
            Counter(who for who, item in expected if item in items[:2]).values()
        )
        labels, counts, users = engines.histogram(one, users=True)
        assert dict(zip(labels.take(np.arange(len(counts))), counts.tolist(), strict=True)) == whole
        assert users == len(numbers)
        bounded = engines.histogram(one, l0=2)
        assert bounded.counts.sum() == sum(min(2, number) for number in numbers.values())
    only = engines.histogram(table, only=tuple(items[:1]))
    assert only.counts.tolist() == [whole[items[0]]]
    sums = clipped_sums(Table(data, **columns, value="value"), items=items, bounds=(0, 4), resolution=1)[1]
    assert sums.tolist() == [
        sum(min(4, sum(cells)) for (_, one), cells in expected.items() if one == item) for item in items
    ]
    (pairs,) = pairs_of(Table(data, **columns), [(None, 1.0)])
    assert sorted(pairs.sizes().tolist()) == sorted(numbers.values())


def test_verbs_and_mechanisms_promise_the_unit_of_their_table():
    day = {"user": "user", "item": "page", "time": "ts", "unit": "user-day"}
    for release, measure in (
        (dp.count(LOG, **day, rho=1, delta=1e-6), "counts of user-days"),
        (dp.count(LOG, **day, rho=1, delta=1e-6, l0=1), "counts of user-days clipped to 1 item each"),
        (dp.count(LOG, **day, rho=1, delta=1e-6, l0="auto"), "counts of user-days clipped"),
        (dp.count(LOG, **day, rho=1, items=["home"]), "counts of user-days"),
        (dp.count(LOG, **day, rho=1, delta=1e-6, items=["x"], others=True), "counts of user-days"),
        (dp.top_k(LOG, **day, rho=1, delta=1e-6, k=1), "items by rank"),
        (dp.top_k(LOG, **day, rho=1, delta=1e-6, k=1, l0=1, method="discover+peel"), "items by rank"),
        (dp.select(LOG, **day, rho=1, delta=1e-6), "items"),
        (dp.select(LOG, **day, rho=1, delta=1e-6, l0=1), "items"),
        (dp.sum({**LOG, "v": [1] * 2 * N}, **day, value="v", bounds=(0, 1), rho=1, delta=1e-6), "for each user-day"),
        (dp.Plume(rho=1, delta=1e-6, m=2, m_prime=2).release(LOG, **day), "counts of user-days clipped"),
        (dp.GumbelTopK.from_rho(rho=1, delta=1e-6, k=1).release(dp.Histogram.from_table(LOG, **day)), "items by rank"),
        (SetUnion.from_rho(rho=1, delta=1e-6, l0=1).release(UserItems.from_table(LOG, **day)), "items"),
    ):
        assert "home" in release.items
        assert release.guarantee.unit == release.spent.unit == "user-day", release
        assert "per user and day in UTC" in str(release.guarantee)
        assert measure in release.measure
        assert sum("who has rows in several days counts in each" in note for note in release.notes) == 1
        if measure.startswith("counts"):
            # The noise is far below half of the users: a failure has a chance below 1e-9.
            assert abs(release["home"] - 2 * N) < N / 2
    first = dp.count(LOG, **day, rho=1, delta=1e-6)
    refine = Refinement(of=first, rho=1)
    assert refine.release(dp.Histogram.from_table(LOG, **day)).guarantee == first.guarantee + refine.guarantee
    with pytest.raises(ParameterError, match="the same unit"):
        refine.release(dp.Histogram.from_pairs([1], ["home"]))
    with pytest.raises(ParameterError, match="a unit of its own"):
        dp.Stream.recommended(rho=1, delta=1e-6, l0=1, horizon=2).start().step(Table(LOG, **day))
