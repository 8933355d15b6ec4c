"""Benchmark scripts, run on small tables."""

import io
import json
import os
import re
import runpy
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

import pytest

import discreet

BENCHES = Path(__file__).parent.parent / "benches"

SCRIPTS = [
    ["compare.py", "--rows", "2000", "--rounds", "1", "--case", "strings, few"],
    ["selection.py", "--items", "1000", "--rounds", "1"],
    ["memory.py", "--rows", "20000", "--memory", "256MiB"],
]


RUN = subprocess.run


def run_here(command, **options):
    """Run a command of Python in this process, in place of `subprocess.run`, so that nothing is imported again."""
    if command[0] == "git":
        return RUN(command, **options)
    _, first, *arguments = map(str, command)
    script = arguments.pop(0) if first == "-c" else first
    out, err, code = io.StringIO(), io.StringIO(), 0
    with patch.object(sys, "argv", [first, *arguments]), redirect_stdout(out), redirect_stderr(err):
        try:
            if first == "-c":
                exec(script, {"__name__": "__main__"})
            else:
                runpy.run_path(script, run_name="__main__")
        except SystemExit as ended:
            code = ended.code or 0
    return subprocess.CompletedProcess(command, code, out.getvalue(), err.getvalue())


@pytest.fixture
def bench(monkeypatch):
    """Return a function that runs a script and its children in this process; it returns the script's output."""
    monkeypatch.syspath_prepend(BENCHES)
    monkeypatch.setattr(subprocess, "run", run_here)
    # Some modules of the benchmarks and of the tests have the same name, such as test_selection.
    names = {path.stem for path in BENCHES.glob("*.py")}
    for name in names & {*sys.modules}:
        monkeypatch.delitem(sys.modules, name)

    def run(name, *options):
        done = run_here([sys.executable, BENCHES / name, *options])
        assert done.returncode == 0, (done.returncode, done.stderr)
        return done.stdout

    yield run
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.skipif(sys.platform != "linux", reason="peaks of memory are read from /proc")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script[0])
def test_all_compared_libraries_agree(bench, script):
    for name in ("duckdb", "polars", "pyarrow", "pandas"):
        pytest.importorskip(name)
    out = bench(*script)
    assert "core" in out
    assert "failed" not in out


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
def test_a_compared_library_runs_in_its_own_process():
    command = [sys.executable, BENCHES / "compare.py", "--rows", "2000", "--child", "strings, few", "core"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert {"wall", "cpu", "extra", "counted"} <= set(json.loads(done.stdout))


@pytest.mark.skipif(sys.platform != "linux", reason="free memory is read from /proc")
def test_the_file_to_release_benchmark_runs(bench, tmp_path, monkeypatch):
    for name in ("duckdb", "polars"):
        pytest.importorskip(name)
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"u": [f"{n}" for n in range(3000)], 'an "item"\'s name': ["a", "b's", None] * 1000}
    parquet.write_table(pa.table(columns), tmp_path / "rows.parquet")
    names = ["--user", "u", "--item", 'an "item"\'s name', "--rounds", "1"]
    import footprint

    touched = []
    monkeypatch.setattr(footprint, "touch_memory", touched.append)  # half a gigabyte takes a second of CPU time
    out = bench("file_to_release.py", str(tmp_path / "rows.parquet"), *names)
    assert [line.split()[0].split("_")[0] for line in out.splitlines()] == [
        "discreet", "polars", "polars", "polars", "duckdb", "duckdb",
    ]  # fmt: skip
    assert len(touched) == 6


def test_the_csv_benchmark_runs(bench):
    pytest.importorskip("duckdb")
    out = bench("csv_read.py", "--megabytes", "0.1", "--rounds", "1")
    assert [line.split()[1] for line in out.splitlines()] == [
        "discreet", "splitting", "duckdb_parallel", "duckdb_serial",
    ] * 2  # fmt: skip


def test_the_utility_benchmark_runs(bench, tmp_path):
    record = tmp_path / "record.json"
    bench("utility.py", "--runs", "1", "--shape", "retail", "--record", str(record))
    found = json.loads(record.read_text())["shapes"]["retail"]
    assert list(found) == ["0.1", "0.5", "1"]
    for row in found.values():
        ours, others = row["confirmed counts"], row["private count release"]
        assert ours["good"] > 1.5 * others["good"] > 0
        assert ours["named"] >= ours["good"] == ours["good_clipped"]
        assert ours["rms"] < 0.08
        assert row["calibrated counts"]["good"] > 1.1 * ours["good"]
        assert row["threshold l0=10"]["good_clipped"] > 10 * row["threshold l0=10"]["good"]


def test_pages_have_the_figures_of_the_utility_record(monkeypatch):
    monkeypatch.syspath_prepend(BENCHES)
    from shapes import HARD
    from utility import best

    def cell(row, name):
        figures, l0 = best(row, name)
        return f"{figures['good']:,.0f} ({l0})"

    record = json.loads((BENCHES / "record" / "utility.json").read_text())
    text = (BENCHES.parent / "docs" / "benchmarks.md").read_text("utf-8")
    readme = (BENCHES.parent / "README.md").read_text("utf-8")
    columns = ["calibrated counts", "confirmed counts", "private count release", "plume p95", "plume p99"]
    for shape, found in record["shapes"].items():
        row = found["0.5"]
        cells = [f"{row[name]['good']:,.0f}" for name in columns]
        cells += [cell(row, "threshold"), cell(row, "opendp"), f"{row['threshold l0=10']['good_clipped']:,.0f}"]
        assert f"| {shape} | {' | '.join(cells)} |" in text
        if shape in HARD:
            continue
        of_peers = [f"{best(row, name)[0]['good']:,.0f}" for name in ("threshold", "opendp")]
        assert f"| {shape} | {' | '.join(cells[:3])} | {cells[4]} | {' | '.join(of_peers)} |" in readme
        cells = [cell(row, name) for name in ("discreet", "pipelinedp", "smartnoise", "tumult")]
        assert f"| {shape} | {' | '.join(cells)} |" in text
    text = (BENCHES.parent / "docs" / "confirmed-counts.md").read_text("utf-8")
    for table, found in record["tables"].items():
        row = found["0.5"]
        cells = [f"{row[name]['good']:,.0f}" for name in columns]
        cells += [cell(row, "threshold"), f"{row['threshold l0=10']['good_clipped']:,.0f}"]
        assert f"| {table.replace('_', ' ')} | {' | '.join(cells)} |" in text


def test_the_utility_benchmark_skips_libraries_that_are_not_installed(tmp_path):
    (tmp_path / "tmlt").mkdir()  # hides an installed Tumult
    (tmp_path / "tmlt" / "__init__.py").write_text("raise ImportError('hidden')")
    record = tmp_path / "record.json"
    record.write_text('{"machine": {}, "shapes": {}}')
    command = [sys.executable, str(BENCHES / "utility.py"), "--runs", "1", "--shape", "retail", "--record", str(record)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [*command, "--library", "tumult", "--library", "discreet"], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("tumult is skipped, because tmlt.core is not installed: hidden")
    row = json.loads(record.read_text())["shapes"]["retail"]["0.5"]
    assert list(row) == [f"discreet l0={l0}" for l0 in (1, 3, 10, 30, 100, 300)]
    assert row["discreet l0=300"]["good"] > 10 * row["discreet l0=30"]["good"]


def test_each_figure_is_compared_with_its_best_peer(monkeypatch):
    monkeypatch.syspath_prepend(BENCHES)
    from compare import compared

    runs = {
        "core": [{"wall": wall, "extra": 10, "wall_again": 1} for wall in (1, 9, 2)],
        "quick": [{"wall": wall, "extra": 30, "wall_again": 8} for wall in (7, 6, 5)],
        "lean": [{"wall": 12, "extra": 5}],
    }
    found = compared(runs, ["quick", "lean"])
    assert found["medians"]["core"] == {"wall": 2, "extra": 10, "wall_again": 1}
    assert found["best_peer_over_core"] == {"wall": 3, "extra": 0.5, "wall_again": 8}
    assert compared(runs, ["lean"])["best_peer_over_core"] == {"wall": 6, "extra": 0.5}
    no_time = [{"wall": 0, "extra": 10, "wall_again": 0}]
    assert compared({**runs, "core": no_time}, ["lean"])["best_peer_over_core"] == {"extra": 0.5}


def test_a_library_with_another_count_ends_the_comparison(monkeypatch):
    monkeypatch.syspath_prepend(BENCHES)
    from compare import check

    counted = {}
    for case, found in [("few", 5), ("many", 7), ("few", 5)]:
        check(counted, case, "core", found)
    with pytest.raises(SystemExit, match="few: lean counts 7, others 5"):
        check(counted, "few", "lean", 7)


@pytest.mark.parametrize("path", sorted((BENCHES / "record").iterdir()), ids=lambda path: path.stem)
def test_a_record_has_its_date_and_commit(path):
    record = json.loads(path.read_text("utf-8"))
    for made in record["made"].values() if "made" in record else [record]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", made["date"])
        assert re.fullmatch(r"[0-9a-f]{8,}(-dirty)?", made["commit"])


def test_a_record_that_is_extended_gets_a_new_date(bench, tmp_path):
    import records

    records.write(tmp_path / "record.json", {"rows": 1, "date": "2000-01-01"})
    found = json.loads((tmp_path / "record.json").read_text("utf-8"))
    assert list(found) == ["date", "commit", "rows"]
    assert found["date"] > "2000-01-01"


def test_a_fifth_more_instructions_than_recorded_fail(bench):
    import instructions

    assert set(json.loads(instructions.RECORD.read_text("utf-8"))["instructions"]) == {*instructions.CASES}
    assert instructions.compared({"a": 120, "new": 5}, {"a": 100})[1]
    assert not instructions.compared({"a": 121, "new": 5}, {"a": 100})[1]


@pytest.mark.parametrize("script", ["medians.py", "test_streams.py"])
def test_slow_benchmarks_have_a_help_text(bench, script):
    assert "--record FILE" in bench(script, "--help")


@pytest.mark.statistical
@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("kind", ["BinaryMechanism", "SquareRootMechanism"])
def test_a_stream_stays_within_its_planned_memory(kind):
    mechanism = getattr(discreet.streams, kind).from_rho(rho=0.5, delta=1e-9, l0=1, horizon=1000)
    command = [sys.executable, str(BENCHES / "stream_memory.py"), kind, "1000", "200000"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) <= mechanism.item_bytes
