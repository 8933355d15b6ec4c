"""The items of every user: reading, memory limits, progress, interrupts and text."""

import _thread
import os
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest
from scipy.stats import chi2
from user_lists import lists_of

import discreet as dp
from discreet import _core, engines
from discreet.engines.sql import connect
from discreet.errors import InputError, ParameterError, SchemaError

COLUMNS = {"user": "user", "item": "item"}


def weights_of(source, **options):
    """Return a weight for each item, which is larger the fewer items its users have."""
    memory = {"memory": options.pop("memory")} if "memory" in options else {}
    here = engines.lists(dp.Table(source, user="user", item="item", **memory), **options)
    return weights(here._labels, here._lists)


def weights(labels, lists):
    found = lists.weights("even_squares", 30)
    named = labels.take(np.arange(len(found)))
    return {item: weight for item, weight in zip(named, found.tolist(), strict=True) if weight}


def log(rows, seed=1):
    rng = np.random.default_rng(seed)
    return {"user": rng.integers(0, 500, rows), "item": rng.zipf(1.3, rows) % 5000}


def test_a_list_of_tables_is_read_as_one(tmp_path):
    polars = pytest.importorskip("polars")
    parts = [log(3000, seed) for seed in range(3)]
    whole = {name: np.concatenate([part[name] for part in parts]) for name in ("user", "item")}
    polars.DataFrame(parts[0]).write_parquet(tmp_path / "first.parquet")
    mixed = [tmp_path / "first.parquet", parts[1], polars.DataFrame(parts[2])]
    assert weights_of(mixed) == weights_of(whole) == weights_of(parts)
    release = dp.select(mixed, **COLUMNS, epsilon=3.0, delta=1e-6, l0=50, method="weighted_gaussian")
    assert len(release) > 0


def test_dictionaries_are_read_as_their_values():
    pyarrow = pytest.importorskip("pyarrow")

    def column(indices, values):
        return pyarrow.DictionaryArray.from_arrays(pyarrow.array(indices, pyarrow.int8()), pyarrow.array(values))

    def batch(users, items):
        return pyarrow.record_batch({"user": column(*users), "item": column(*items)})

    parts = [
        batch(([0, 0, 1, None], ["u", "v", "x"]), ([2, 2, 0, 0], ["a", "no", "b"])),
        batch(([1, 0, 0], ["v", "u", "u"]), ([0, 1, 2], ["b", None, "c"])),
    ]
    texts = pyarrow.Table.from_batches(parts)
    pairs = {("u", "b"), ("v", "a"), ("v", "c")}
    assert weights_of(texts) == weights_of({"user": [u for u, _ in pairs], "item": [i for _, i in pairs]})
    numbers = pyarrow.table({"user": column([0, 1, 1], [7, 9]), "item": column([1, 1, 0], [-5, 2**40])})
    assert weights_of(numbers) == weights_of({"user": [7, 9, 9], "item": [2**40, 2**40, -5]})


def test_tables_that_cannot_be_read_together_are_refused(tmp_path):
    parts = [{"user": [1], "item": np.array([1])}, {"user": [1], "item": np.array(["a"])}]
    with pytest.raises(SchemaError, match="different types"):
        dp.tables.UserItems.from_table(parts, **COLUMNS)
    with pytest.raises(ParameterError):
        dp.tables.UserItems.from_table([], **COLUMNS)
    (tmp_path / "broken.parquet").write_bytes(b"PAR1 and nothing")
    with pytest.raises(InputError, match="broken"):
        dp.tables.UserItems.from_table([tmp_path / "broken.parquet", parts[0]], **COLUMNS)


@pytest.mark.parametrize("strings", [False, True])
def test_low_memory_gives_equal_lists(strings):
    rows = log(200_000)
    users, items = (rows[name].astype("U9") if strings else rows[name] for name in ("user", "item"))
    expected = weights(*lists_of(users, items))
    for memory in (8 << 20, 1 << 19):
        assert weights(*lists_of(users, items, memory=memory)) == expected


@pytest.mark.parametrize("strings", [False, True])
def test_sorted_lists_are_equal_for_any_number_of_threads(strings):
    pyarrow = pytest.importorskip("pyarrow")
    rows = log(300_000)
    users, items = (rows[name].astype("U9") if strings else rows[name] for name in ("user", "item"))
    table, distinct, weights = pyarrow.table({"user": users, "item": items}), sorted(set(items.tolist())), []
    for threads in (1, 2, 5):
        labels, lists = _core.Lists.read(table.to_reader(50_000), "user", "item", threads=threads)
        labels, order = labels.ordered(np.arange(len(distinct)), np.zeros(len(distinct), np.int64))
        assert labels.to_list() == distinct
        weights.append(lists.ordered(order).weights("water", 20, target=9 << 20).tolist())
    # The weights depend on the order of users and of each user's items. For text a key of the call decides it.
    assert strings or weights[0] == weights[1] == weights[2]


def test_repeated_rows_take_no_memory():
    users, items = np.tile(np.arange(1000), 3000), np.tile(np.arange(1000) % 10, 3000)
    assert weights(*lists_of(users, items, memory=2 << 20)) == dict.fromkeys(range(10), 100 << 30)


def test_memory_and_l0_are_checked_before_reading():
    for options, named in [({"memory": "1MB"}, "memory"), ({"memory": "much"}, "memory"), ({"l0": 0}, "l0")]:
        with pytest.raises(ParameterError, match=named):
            dp.tables.UserItems.from_table("nowhere.parquet", **COLUMNS, **options)
        with pytest.raises(ParameterError, match=named):
            dp.tables.UserItems.from_pairs([1], [1], **options)


@pytest.mark.parametrize("strings", [False, True])
@pytest.mark.parametrize("memory", [None, 2 << 20])
def test_l0_items_of_each_user_are_kept_uniformly(strings, memory):
    people, own, l0 = 4000, 8, 3
    users, items = np.repeat(np.arange(people), own), np.tile(np.arange(own), people)
    if strings:
        users, items = users.astype("U8"), items.astype("U4")
    found = weights(*lists_of(users, items, l0=l0, memory=memory))
    share = int(2**30 / 3**0.5)
    counts = np.array(list(found.values())) // share
    assert counts.sum() == people * l0
    # A user keeps l0 different items, so the counts of the items are negatively correlated.
    variance = people * l0 / own * (1 - l0 / own) * own / (own - 1)
    assert chi2.sf(((counts - people * l0 / own) ** 2).sum() / variance, own - 1) > 1e-10
    assert weights(*lists_of(users, items, l0=l0)) != found


def test_l0_bounds_the_memory_of_a_user_with_many_items():
    users = np.concatenate([np.zeros(1_000_000, np.int64), np.arange(1000)])
    items = np.concatenate([np.arange(1_000_000), np.arange(1000)])
    found = weights(*lists_of(users, items, l0=5, memory=32 << 20))
    assert 1000 <= len(found) <= 1004


def slow():
    """Return a table whose batches arrive more slowly than progress is reported."""
    pyarrow = pytest.importorskip("pyarrow")
    batch = pyarrow.record_batch({"user": [1, 2], "item": [3, 4]})

    def batches():
        for _ in range(3):
            time.sleep(0.12)
            yield batch

    return pyarrow.RecordBatchReader.from_batches(batch.schema, batches())


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="peaks of memory are read from /proc")
@pytest.mark.parametrize("megabytes", [24, 200])
def test_reading_stays_within_the_memory_limit(megabytes):
    pytest.importorskip("polars")
    code = f"""
        import numpy as np, polars
        from discreet import _core
        rng = np.random.default_rng(1)
        table = polars.DataFrame({{name: rng.integers(0, 200_000, 2_000_000) for name in ("user", "item")}})
        def kilobytes(name):
            return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
        before, held = kilobytes("VmHWM"), kilobytes("VmRSS")
        _core.Lists.read(table, "user", "item", memory={megabytes} << 20)
        peak = kilobytes("VmHWM")
        print(peak == before or peak - held <= ({megabytes} + 8) * 1024)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "True\n", done.stderr


def test_progress_is_called_without_a_number():
    calls, calls_of_select = [], []
    dp.tables.UserItems.from_table(slow(), **COLUMNS, progress=lambda: calls.append(1))
    dp.select(slow(), **COLUMNS, epsilon=1.0, delta=1e-6, l0=9, progress=lambda: calls_of_select.append(1))
    assert calls
    assert calls_of_select


def test_an_error_in_progress_ends_the_reading():
    def enough():
        raise ValueError("enough")

    with pytest.raises((ValueError, InputError)):
        dp.tables.UserItems.from_table(slow(), **COLUMNS, progress=enough)


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("kind", ["BIGINT", "VARCHAR"])
def test_an_interrupt_ends_reading_before_the_last_row(kind):
    # No Python code runs while DuckDB's rows are read and while `extend` takes the lists from `map`.
    columns = f'(range % 1000)::{kind} AS "user", (range % 7)::{kind} AS item'
    rows, read = connect().sql(f"SELECT {columns} FROM range(200000000)"), []
    threading.Timer(0.2, _thread.interrupt_main).start()
    with pytest.raises(KeyboardInterrupt):
        read.extend(map(_core.Lists.read, [rows], ["user"], ["item"]))
    assert not read


@pytest.mark.parametrize("columns", [("user", "thing"), ("user", "user"), (1, "item")])
def test_missing_columns_are_refused(columns):
    with pytest.raises((SchemaError, ParameterError)):
        dp.tables.UserItems.from_table(log(10), user=columns[0], item=columns[1])
