"""Counting with less memory than the rows need: the same histogram, and no file left behind."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pairs import as_dict, columns, counted_pairs

from discreet import _core
from discreet.engines.memory import Memory, _group_limits
from discreet.errors import ParameterError
from discreet.reference.count import count_pairs

POSIX = pytest.mark.skipif(os.name != "posix", reason="temporary files are observed through /proc or POSIX limits")


def table(rows, strings, seed=1):
    random = np.random.default_rng(seed)
    users = random.integers(0, 30_000, rows) * 7_919_003
    items = random.zipf(1.2, rows) % 60_000
    return (users.astype("U16"), items.astype("U16")) if strings else (users, items)


@settings(max_examples=60, deadline=None)
@given(columns(), st.integers(1, 3))
def test_little_memory_gives_the_counts_of_the_reference(pairs, threads):
    assert as_dict(counted_pairs(*pairs, threads=threads, memory=0)) == count_pairs(*pairs)


@pytest.fixture(
    scope="module",
    params=[
        *((50_000, strings) for strings in (False, True)),
        *(pytest.param((400_000, strings), marks=pytest.mark.statistical) for strings in (False, True)),
    ],
    ids=str,
)
def tables(request):
    """Return a table of one kind and a table of mixed kinds, each with its histogram computed in enough memory."""
    rows, strings = request.param
    pairs = table(rows, strings)
    mixed = (pairs[0], np.arange(rows) % 999) if strings else (pairs[0].astype("U24"), pairs[1])
    return [(users, items, as_dict(counted_pairs(users, items))) for users, items in (pairs, mixed)]


@pytest.mark.parametrize("memory", [0, 1 << 20, 1 << 25])
@pytest.mark.parametrize("threads", [1, 4])
def test_the_histogram_does_not_depend_on_the_memory(tables, memory, threads):
    for users, items, expected in tables:
        assert as_dict(counted_pairs(users, items, threads=threads, memory=memory)) == expected


@pytest.mark.parametrize("strings", [False, True])
def test_threads_that_spill_give_the_same_counts(strings):
    pairs = table(500_000, strings)
    expected = as_dict(counted_pairs(*pairs))
    for threads in (2, 4):
        assert as_dict(counted_pairs(*pairs, threads=threads, memory=1 << 24)) == expected


@pytest.mark.parametrize("size", [200_000, pytest.param(600_000, marks=pytest.mark.statistical)])
def test_an_item_of_all_users_is_counted_in_little_memory(size):
    users = np.arange(size) * 2**33
    items = np.zeros(size, np.int64)
    items[::1000] = np.arange(size // 1000)
    for users_as, items_as in ((users, items), (users.astype("U24"), items.astype("U4"))):
        expected = as_dict(counted_pairs(users_as, items_as))
        assert as_dict(counted_pairs(users_as, items_as, memory=0)) == expected


@pytest.mark.parametrize("memory", [None, 0])
def test_larger_keys_after_small_ones_are_counted_exactly(memory):
    users = np.concatenate([np.arange(50_000), np.arange(50_000) + 2**40, -np.arange(50_000)])
    items = np.concatenate([np.full(75_000, 3), np.full(75_000, -(2**62))])
    # Zero has both items, in the first and in the last third.
    expected = {3: 75_000, -(2**62): 75_000}
    assert as_dict(counted_pairs(users, items, memory=memory, threads=2)) == expected


@pytest.mark.parametrize("strings", [False, True])
def test_a_limit_returns_the_same_largest_counts(strings):
    pairs = table(200_000, strings)
    labels, counts = counted_pairs(*pairs)
    rows = _core.top(labels, counts, 300)
    for memory in (None, 0):
        some, kept = counted_pairs(*pairs, limit=300, memory=memory)
        order = _core.top(some, kept, 300)
        assert some.take(order) == labels.take(rows)
        assert kept[order].tolist() == counts[rows].tolist()


def test_a_user_with_very_many_items_keeps_l0_of_them():
    users = np.concatenate([np.zeros(500_000, np.int64), np.arange(20_000)])
    items = np.concatenate([np.arange(500_000), np.arange(20_000)])
    kept = as_dict(counted_pairs(users, items, l0=5, memory=0))
    assert sum(kept.values()) == 5 + 19_999


def run(code, tmp_path, **options):
    """Run code in a new process that puts its temporary files into `tmp_path`."""
    preamble = """
        import os, resource, signal, sys, threading, time
        import numpy as np
        from discreet import _core
        from discreet.errors import ResourceError
        users, items = np.arange(1_500_000) * 2**33, np.arange(1_500_000) % 500_009
    """
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    code = textwrap.dedent(preamble) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60, **options
    )


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are read from /proc")
def test_one_user_with_many_items_stays_within_the_memory(tmp_path):
    code = """
        def mebibytes(name):
            return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024
        users = np.zeros(8_000_000, np.int64)
        items = np.random.default_rng(1).integers(0, 2**62, users.size)
        _core.count_distinct((users[:1000], items[:1000]), "", "", l0=10)
        open("/proc/self/clear_refs", "w").write("5")
        before = mebibytes("VmRSS")
        _, counts, _ = _core.count_distinct((users, items), "", "", l0=10, threads=2, memory=256 << 20)
        print(counts.sum(), mebibytes("VmHWM") - before)
    """
    kept, extra = run(code, tmp_path).stdout.split()
    # The result has 10 items. During the count, every item needs a label and a count of 8 bytes each beyond the limit.
    assert kept == "10"
    assert float(extra) < 256 + 2 * 8 * 8


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="peaks of memory are read from /proc")
def test_memory_kept_for_the_next_count_is_within_its_limit(tmp_path):
    code = """
        def mebibytes(name):
            return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name)) / 1024
        users = np.arange(8_000_000)
        items = np.random.default_rng(1).integers(0, 2**62, users.size)
        few = users[:1000], items[:1000]
        _core.count_distinct(few, "", "")
        before = mebibytes("VmRSS")
        _core.count_distinct((users, items), "", "", threads=2, memory=2 << 30)
        kept = mebibytes("VmRSS") - before
        open("/proc/self/clear_refs", "w").write("5")
        _core.count_distinct((users, items), "", "", threads=2, memory=256 << 20)
        print(kept, mebibytes("VmHWM") - before, mebibytes("VmRSS") - before)
        _core.count_distinct(few, "", "")
        print(mebibytes("VmRSS") - before)
    """
    after_much, peak, after_little, after_few = map(float, run(code, tmp_path).stdout.split())
    # The bounds are in MiB. After the count in 2 GiB the process keeps at most 64 blocks of 4 MiB. The count in 256 MiB
    # may use this limit and, for every item, a label and a count of 8 bytes each. After it the process keeps a quarter
    # of the limit, and after the last count nothing. The rest is for memory that the allocator has not returned.
    assert 100 < after_much < 256 + 32
    assert peak < 256 + 2 * 8 * 8
    assert after_little < 256 / 4 + 64
    assert after_few < 64


@POSIX
def test_a_full_disk_is_a_resource_error_and_leaves_no_file(tmp_path):
    code = """
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (3_000_000, 3_000_000))
        try:
            _core.count_distinct((users, items), "", "", memory=0)
        except ResourceError as error:
            print(error, len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else "")
        try:
            _core.count_distinct((users, items), "", "", memory=0, l0=1)
        except ResourceError as error:
            print(error)
    """
    done = run(code, tmp_path)
    assert done.stdout.count("TMPDIR") == 2, done.stderr
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_a_missing_folder_is_a_resource_error(tmp_path):
    code = """
        try:
            _core.count_distinct((users, items), "", "", memory=0)
        except ResourceError as error:
            print(error)
    """
    assert "TMPDIR" in run(code, tmp_path / "missing").stdout


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="open files are listed in /proc")
def test_a_temporary_file_is_unlinked_private_and_encrypted(tmp_path):
    code = """
        found = []
        def look():
            while not found:
                time.sleep(0.001)
                for name in os.listdir("/proc/self/fd"):
                    try:
                        path = os.readlink(f"/proc/self/fd/{name}")
                        if "discreet-" in path and os.stat(f"/proc/self/fd/{name}").st_size > 1_000_000:
                            content = open(f"/proc/self/fd/{name}", "rb").read()
                            found.append((path, os.stat(f"/proc/self/fd/{name}").st_mode & 0o777, b"secret" in content))
                            return
                    except OSError:
                        pass
        looking = threading.Thread(target=look, daemon=True)
        looking.start()
        items = np.array([f"secret {n}" for n in range(50_000)])[np.arange(150_000) % 50_000]
        _core.count_distinct((np.arange(150_000), items), "", "", memory=0)
        looking.join(10)
        print(found[0][0].endswith(" (deleted)"), oct(found[0][1]), found[0][2])
    """
    done = run(code, tmp_path)
    assert done.stdout == "True 0o600 False\n", done.stderr
    assert list(tmp_path.iterdir()) == []


@POSIX
@pytest.mark.parametrize("delay", [0.15, 0.4])
def test_an_interrupt_ends_a_count_and_leaves_no_file(tmp_path, delay):
    # No Python code runs while `extend` takes 40 counts from `starmap`, so only a count can end them.
    code = f"""
        import functools, itertools
        signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Timer({delay}, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
        counts, count = [], functools.partial(_core.count_distinct, memory=0)
        try:
            counts.extend(itertools.starmap(count, itertools.repeat(((users, items), "", ""), 40)))
        except KeyboardInterrupt:
            print(len(counts) < 40)
    """
    done = run(code, tmp_path)
    assert done.stdout == "True\n", done.stderr
    assert list(tmp_path.iterdir()) == []


@POSIX
def test_a_killed_process_leaves_no_file(tmp_path):
    code = """
        threading.Timer(0.25, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        while True:
            _core.count_distinct((users, items), "", "", memory=0)
    """
    assert run(code, tmp_path).returncode == -signal.SIGKILL
    assert list(tmp_path.iterdir()) == []


# --- memory limits as arguments --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "total"),
    [
        (2**30, 2**30),
        ("2GB", 2 * 10**9),
        ("256MiB", 2**28),
        (" 1.5 GiB ", 3 * 2**29),
        ("1tb", 10**12),
        ("8G", 8 * 10**9),
        ("8 GB", 8 * 10**9),
        ("8GiB", 8 * 2**30),
        ("300m", 3 * 10**8),
        ("1000000000", 10**9),
        ("9" * 20 + "tb", 2**62),
    ],
)
def test_memory_is_bytes_or_text_with_a_unit(given, total):
    assert Memory.of(given).total == total
    assert 0 < Memory.of(given).scan + Memory.of(given).beside_scan < total


@pytest.mark.parametrize(
    "given",
    [0, -1, 2**27, True, 1.5, "2 apples", "", "-2GB", "1.5", "64MB", b"2GB", "nan", "1e9", "8 B", "8Gi", "٣GB", []],
)
def test_invalid_memory_is_a_parameter_error(given):
    with pytest.raises(ParameterError, match="memory"):
        Memory.of(given)


def test_the_error_for_too_little_memory_names_the_minimum():
    with pytest.raises(ParameterError, match=r"at least 256MiB.*leave memory out"):
        Memory.of(2**28 - 1)


@POSIX
def test_the_minimum_holds_a_csv_file_of_usual_size(tmp_path):
    # Without a folder for temporary files, nothing can be spilled.
    code = f"""
        import duckdb
        from discreet.engines import local
        path = {str(tmp_path / "log.csv")!r}
        rows = "SELECT 'user ' || hash(n) % 300000 AS \\"user\\", 'item ' || hash(-n) % 60000 AS item"
        rows += " FROM range(1500000) t(n)"
        duckdb.sql(f"COPY ({{rows}}) TO '{{path}}'")
        print(len(local.histogram(local.Table(path, user="user", item="item", memory="256MiB"))[1]))
    """
    done = run(code, tmp_path / "missing")
    assert done.stdout == "60000\n", done.stderr


def test_the_default_is_at_least_the_minimum_and_reads_groups(tmp_path):
    assert Memory.of(None).total >= 2**28
    (tmp_path / "cgroup").write_text("0::/a/b\n")
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "a" / "memory.max").write_text("5000\n")
    (tmp_path / "a" / "b" / "memory.max").write_text("7000\n")
    assert min(_group_limits(tmp_path / "cgroup", tmp_path)) == 5000
    (tmp_path / "cgroup").write_text("3:cpu:/x\n4:memory:/x\n")
    (tmp_path / "memory" / "x").mkdir(parents=True)
    (tmp_path / "memory" / "x" / "memory.limit_in_bytes").write_text("300\n")
    assert _group_limits(tmp_path / "cgroup", tmp_path) == [300]
    assert _group_limits(tmp_path / "none", tmp_path) == []


def test_a_limit_of_the_address_space_limits_the_memory(monkeypatch):
    resource = pytest.importorskip("resource", reason="Windows has no such limit")
    monkeypatch.setattr(resource, "getrlimit", lambda kind: (2**30 + (kind != resource.RLIMIT_AS), -1))
    assert Memory.of(None).total == 2**29
