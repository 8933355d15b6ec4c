"""Time of partition selection, of thresholds and of finding the largest counts, with this library and with numpy.

Partition selection and thresholds decide on ten million items. Top-k takes the largest of a hundred million counts. The
optimal selection for a rho is compared with a Gaussian threshold: making the mechanism, and a release with labels.
"""

import math

import numpy as np
import pytest

from discreet import GaussianThreshold, Histogram, OptimalSelection, _core

ITEMS = 10_000_000
EPSILON, DELTA = 1.0, 1e-6
LARGEST = 10_001


def made(items):
    """Return Zipf-distributed counts, so that few counts are large."""
    return np.minimum(np.random.default_rng(1).zipf(2.0, items), 2**30).astype(np.int64)


@pytest.fixture(scope="module")
def counts():
    return made(ITEMS)


def labelled(items):
    """Return labels of `items` items, and counts with many ties."""
    import pyarrow as pa

    numbers = np.arange(items, dtype=np.int32)
    labels, *_ = _core.count_distinct(pa.table({"u": np.zeros(items, np.int32), "i": numbers}), "u", "i")
    return labels, np.minimum(np.random.default_rng(1).zipf(1.5, items), 2**30).astype(np.int64)


RHO = {"rho": 0.1, "delta": DELTA, "l0": 1}
MAKERS = {
    "optimal": lambda: OptimalSelection.from_rho(**RHO),
    "gaussian": lambda: GaussianThreshold.from_rho(**RHO),
}


def constructed(who):
    """Make a mechanism with its table of probabilities or its threshold."""
    made = MAKERS[who]()
    return made.chances if who == "optimal" else made.threshold


def histogram(counts):
    """Return a histogram of users with one item each."""
    return Histogram.from_counts(np.arange(len(counts)), counts, l0=1, linf=1, complete=True)


def numpy_top(counts):
    """Return the rows of the largest counts in descending order, ties in any order."""
    first = len(counts) - min(LARGEST, len(counts))
    rows = np.argpartition(counts, first)[first:]
    return rows[np.argsort(-counts[rows], kind="stable")]


def numpy_selection(counts, rng):
    """Return the released rows by the vectorised closed form, with one uniform number per row."""
    e = math.expm1(EPSILON)
    n1 = 1 + math.floor(math.log1p(e * (1 - DELTA) / ((e + 2) * DELTA)) / EPSILON)
    at_n1 = DELTA * math.expm1(n1 * EPSILON) / e
    n = counts.astype(np.float64)
    rising = DELTA * np.expm1(np.minimum(n, n1) * EPSILON) / e
    falling = at_n1 - (1 - at_n1 + DELTA / e) * np.expm1(-(n - n1).clip(0) * EPSILON)
    return np.flatnonzero(rng.random(len(n)) < np.where(n <= n1, rising, np.minimum(falling, 1.0)))


def numpy_threshold(counts, value, rng):
    """Return the released rows and their noisy counts."""
    noisy = counts + np.rint(rng.normal(0, 10.0, len(counts))).astype(np.int64)
    rows = np.flatnonzero(noisy > value)
    return rows, noisy[rows]


@pytest.mark.parametrize("who", ["core", "numpy"])
@pytest.mark.benchmark(group="partition selection, ten million")
def test_partition_selection(benchmark, counts, who):
    chances, rng = OptimalSelection(epsilon=EPSILON, delta=DELTA).chances, np.random.default_rng(1)
    run = {
        "core": lambda: _core.partition_selection(counts, chances),
        "numpy": lambda: numpy_selection(counts, rng),
    }[who]
    assert len(benchmark.pedantic(run, rounds=15, warmup_rounds=2)) > 1000


@pytest.mark.parametrize("who", ["core", "numpy"])
@pytest.mark.benchmark(group="threshold, ten million")
def test_threshold(benchmark, counts, who):
    rule = _core.Threshold.for_chance(_core.Noise.discrete_gaussian(10.0), 1, 1e-6)
    rng = np.random.default_rng(1)
    run = {
        "core": lambda: rule.release(counts),
        "numpy": lambda: numpy_threshold(counts, rule.value, rng),
    }[who]
    assert len(benchmark.pedantic(run, rounds=15, warmup_rounds=2)[0]) > 1000


@pytest.mark.parametrize("who", ["core", "numpy"])
@pytest.mark.benchmark(group="largest of a hundred million counts")
def test_top(benchmark, who):
    labels, counts = labelled(10 * ITEMS)
    run = {"core": lambda: _core.top(labels, counts, LARGEST), "numpy": lambda: numpy_top(counts)}[who]
    assert len(benchmark.pedantic(run, rounds=3, warmup_rounds=1)) == LARGEST


@pytest.mark.parametrize("who", MAKERS)
@pytest.mark.benchmark(group="mechanism for rho = 0.1")
def test_construction_for_rho(benchmark, who):
    benchmark(constructed, who)


@pytest.mark.parametrize("who", MAKERS)
@pytest.mark.benchmark(group="release for rho = 0.1, ten million")
def test_release_for_rho(benchmark, counts, who):
    mechanism, table = MAKERS[who](), histogram(counts)
    assert len(benchmark.pedantic(lambda: mechanism.release(table), rounds=5, warmup_rounds=1)) > 1000
