"""The number of distinct users of all counted rows: by the Rust core, Ibis and Spark."""

import numpy as np
import pytest
from counting import read
from pairs import as_dict

from discreet import Histogram, _core


def users_of(users, items, only=None):
    """Return the number of distinct users of the rows without NULL, or of those rows with a listed item."""
    rows = zip(users, items, strict=True)
    return len({user for user, item in rows if None not in (user, item) and (only is None or item in only)})


def table(rng, rows, names):
    """Return `rows` cells with 5 % NULLs: small, large or negative numbers, or text, as `names` says."""
    kinds = {
        "small": lambda n: n,
        "large": lambda n: (n * 0x9E3779B97F4A7C15 + 2**40) % 2**63,
        "negative": lambda n: -n - 1,
        "text": lambda n: f"name {n}",
    }
    made = [kinds[names](n) for n in range(2000)]
    chosen = rng.integers(0, rng.integers(1, len(made)), rows).tolist()
    return [None if rng.random() < 0.05 else made[n] for n in chosen]


@pytest.mark.parametrize("names", ["small", "large", "negative", "text"])
@pytest.mark.parametrize("labels", ["small", "large", "text"])
@pytest.mark.parametrize("most", [5000, pytest.param(20_000, marks=pytest.mark.statistical)])
def test_the_number_of_users_includes_all_counted_users(names, labels, most):
    rng = np.random.default_rng(4)
    for rows in (1, 7, 300, most):
        users, items = table(rng, rows, names), table(rng, rows, labels)
        if not any(user is not None for user in users) or not any(item is not None for item in items):
            continue
        listed = sorted({item for item in items if item is not None})[:3]
        expected = as_dict(_core.count_distinct((users, items), "", ""))
        whole, some = users_of(users, items), users_of(users, items, set(listed))
        for memory in (None, 0):
            for threads in (1, 3):
                limits = {"threads": threads, "memory": memory, "users": True}
                found = _core.count_distinct((users, items), "", "", **limits)
                assert found[2] == whole
                assert as_dict(found) == expected
                only = _core.Labels.from_sequence(listed)
                kept = _core.count_distinct((users, items), "", "", only=only, **limits)
                assert kept[2] == some
                one = _core.count_distinct((users, items), "", "", l0=1, **limits)
                assert one[2] == int(one[1].sum()) == whole


def test_limit_and_cap_do_not_change_the_number_of_users():
    users, items = np.arange(1000), np.arange(1000) % 10
    for options in ({"limit": 3}, {"cap": 2}, {"limit": 0}):
        assert _core.count_distinct((users, items), "", "", users=True, **options)[2] == 1000


def test_a_user_in_several_batches_counts_once():
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(5)
    for scale in (1, 2**40):
        batches = [pa.table({"u": rng.integers(0, 500, 4000) * scale, "i": rng.integers(0, 9, 4000)}) for _ in range(5)]
        every = np.concatenate([batch["u"].to_numpy() for batch in batches])
        assert read(batches, "u", "i", users=True).users == len(np.unique(every))
        assert read(batches, "u", "i").users is None


def test_users_of_dictionary_columns_are_counted():
    pa = pytest.importorskip("pyarrow")
    users = pa.array([f"u{n % 97}" for n in range(10_000)]).dictionary_encode()
    items = pa.array([None if n % 97 == 5 else f"i{n % 7}" for n in range(10_000)]).dictionary_encode()
    assert read(pa.table({"u": users, "i": items}), "u", "i", users=True).users == 96


USERS, ITEMS = [1, 1, 2, 3, 4, 4, None, 5], ["a", "b", "a", "c", "d", "d", "a", None]


@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("only", [None, ["a", "b"], []])
def test_ibis_counts_users_without_a_further_query(limit, only, monkeypatch):
    ibis = pytest.importorskip("ibis")
    pytest.importorskip("duckdb")
    memory = ibis.duckdb.connect()
    data = memory.create_table("t", ibis.memtable({"u": USERS, "i": ITEMS}, schema={"u": "int64", "i": "string"}))
    execute, queries = type(memory).to_pyarrow, []
    monkeypatch.setattr(
        type(memory), "to_pyarrow", lambda *given, **named: queries.append(1) or execute(*given, **named)
    )
    counted = read(data, "u", "i", users=True, only=only, limit=limit)
    assert counted.users == users_of(USERS, ITEMS, only)
    with_users = len(queries)
    assert read(data, "u", "i", only=only, limit=limit).users is None
    assert with_users == len(queries) - with_users > 0


@pytest.mark.spark
@pytest.mark.parametrize("limit", [None, 2])
@pytest.mark.parametrize("only", [None, ["a", "b"], []])
def test_spark_counts_users_of_the_counted_rows(spark, limit, only):
    data = spark.createDataFrame(list(zip(USERS, ITEMS, strict=True)), "u long, i string")
    counted = read(data, "u", "i", users=True, only=only, limit=limit)
    assert counted.users == users_of(USERS, ITEMS, only)
    assert read(data, "u", "i").users is None


def test_the_number_of_users_is_not_in_a_histograms_text():
    data = {"u": [1, 1, 2, 3], "i": ["a", "b", "a", "c"]}
    assert Histogram.from_table(data, user="u", item="i", count_users=True)._users == 3
    assert Histogram.from_pairs(data["u"], data["i"], count_users=True)._users == 3
    assert Histogram.from_table(data, user="u", item="i")._users is None
    assert "3" not in repr(Histogram.from_table(data, user="u", item="i", count_users=True))
