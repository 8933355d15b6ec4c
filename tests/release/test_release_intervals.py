"""Intervals of true counts, refusals of clipped counts, and what says that counts are clipped."""

import json
import math

import numpy as np
import pytest
from intervals import CASES, coverage
from released import counted, named, ranked

import discreet as dp
from discreet.errors import ParameterError
from discreet.release.intervals import reaches
from discreet.testing import seeded_rng

LOG = {"user": [n for n in range(4000) for _ in range(3)], "item": ["a", "b", "c"] * 4000}
COLUMNS = {"user": "user", "item": "item"}


def test_an_interval_is_two_arrays_in_the_order_of_the_rows():
    found = counted().interval(0.95)
    assert [*found] == ["low", "high"]
    assert all(isinstance(end, np.ndarray) and end.dtype == np.int64 for end in found.values())
    assert (found["high"] - counted().counts).tolist() == [10] * 8
    assert (counted().counts - found["low"]).tolist() == [10] * 8
    wider = counted().interval(confidence=0.999)
    assert np.all(wider["low"] < found["low"])
    assert np.all(wider["high"] > found["high"])


def test_ends_are_never_negative():
    found = counted(counts=np.array([3, -1, -50] + [0] * 5)).interval()
    assert found["low"].min() == 0
    assert found["high"].tolist()[:3] == [13, 9, 0]


@pytest.mark.parametrize("sigma", [0.3, 1.0, 2.5, 7.0, 40.0])
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.95, 0.999])
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_reaches_are_the_least_whole_numbers(sigma, confidence, law):
    reach = int(reaches(np.array([sigma]), confidence, law)[0])

    def tail(number):
        """Return the probability that the noise exceeds a number, up or down."""
        if law == "laplace":
            p = math.exp(-2 * math.asinh(1 / (math.sqrt(2) * sigma)))
            return 2 * p ** (number + 1) / (1 + p)
        span = np.arange(-1000, 1001)
        mass = np.exp(-(span**2) / (2 * sigma**2))
        return mass[np.abs(span) > number].sum() / mass.sum()

    assert tail(reach) <= 1 - confidence + 1e-3
    assert reach == 0 or sigma < 1 or tail(reach - 1) > 1 - confidence - 1e-3


@pytest.mark.parametrize("name", CASES)
def test_intervals_contain_the_true_counts(name):
    assert 0.92 <= coverage(name, runs=12) <= 0.985


@pytest.mark.parametrize("kind", ["gaussian", "laplace", "geometric"])
@pytest.mark.parametrize("below", [-1, 0, 1, 2])
def test_intervals_near_a_threshold_contain_the_true_counts(kind, below):
    mechanism = {
        "gaussian": dp.GaussianThreshold.from_rho(rho=0.01, delta=1e-6, l0=10),
        "laplace": dp.LaplaceThreshold.from_epsilon(epsilon=1, delta=1e-6, l0=10),
        "geometric": dp.TruncatedGeometric(epsilon=1, delta=1e-6, l0=10),
    }[kind]
    users = int(mechanism.threshold.value - below * mechanism.deviation)
    table = dp.Histogram.from_counts([*range(20_000)], [users] * 20_000, l0=10, linf=1, complete=True)
    release = mechanism.release(table, rng=seeded_rng(3))
    found = release.interval(0.95)
    assert release.above == mechanism.threshold.value
    assert 200 < len(release) < 20_000
    assert 0.93 < np.mean((found["low"] <= users) & (users <= found["high"])) < 0.985
    # Far above the threshold, the interval is the one of the noise alone.
    far = counted(items=["a"], counts=np.array([10**6]), above=100).interval()
    assert far["low"][0] == 10**6 - 10
    wide = counted(items=["a", "b"], counts=np.array([130, 101]), above=100).interval()
    assert wide["low"].tolist() == [wide["low"][0], 0]
    assert 100 < wide["low"][0] <= 120


@pytest.mark.parametrize("confidence", [0, 1, -0.1, 1.1, math.nan, "0.9", None, True])
def test_a_confidence_out_of_range_is_refused(confidence):
    for call in (counted().interval, lambda value: counted().compare(counted(), value)):
        with pytest.raises(ParameterError, match="confidence"):
            call(confidence)


def test_releases_without_counts_have_no_interval():
    for release in (ranked(), named()):
        with pytest.raises(ParameterError, match="no counts to interval"):
            release.interval(0.95)


def clipped_releases():
    plume = dp.Plume(rho=1.0, delta=1e-6, m=2, m_prime=2).release(LOG, **COLUMNS)
    counts = dp.count(LOG, **COLUMNS, rho=1.0, delta=1e-6, l0=2)
    events = dp.BinaryMechanism.from_rho(rho=0.5, delta=1e-6, l0=2, horizon=4).start().step([["a", "b", "c"]] * 900)
    return {"plume": plume, "count": counts, "stream": events, "part": counts[:1]}


@pytest.mark.parametrize("name", ["plume", "count", "stream", "part"])
def test_clipped_counts_say_so_everywhere(name, tmp_path):
    release = clipped_releases()[name]
    unit = "events" if name == "stream" else "users"
    text = f"counts of {unit} clipped to 2 items each; sigma is the noise alone"
    assert release.clipped
    assert release.measure == text
    assert release.notes.count(text) == 1
    assert text in repr(release)
    assert text in release._repr_html_()
    with pytest.raises(ParameterError, match=f"no interval of the true counts: these are {text}"):
        release.interval(0.95)
    release.write(tmp_path / "rows.csv", certificate=True)
    written = json.loads((tmp_path / "rows.csv.certificate.json").read_text())
    assert (written["clipped"], written["measure"]) == (True, text)
    release.write(tmp_path / "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text())["measure"] == text
    pytest.importorskip("matplotlib")
    from matplotlib import pyplot

    assert text in release.plot(pyplot.figure().add_subplot()).get_xlabel()
    pyplot.close("all")


def test_one_item_each():
    assert dp.count(LOG, **COLUMNS, rho=1.0, delta=1e-6, l0=1).measure.startswith(
        "counts of users clipped to 1 item each"
    )


def test_sums_of_values_are_clipped():
    rows = {"user": [*range(1000)], "item": ["a"] * 1000, "value": [2.0] * 1000}
    sums = dp.mechanisms.ClippedSums(rho=1.0, items=("a",), low=0, high=10, resolution=0.1)
    release = sums.release(rows, user="user", item="item", value="value")
    assert release.clipped
    assert release.measure == (
        "sums of value in steps of 0.1, clipped to [0, 1] for each user and item; sigma is the noise alone"
    )
    with pytest.raises(ParameterError, match="no interval"):
        release.interval()


def test_a_refinement_of_clipped_counts_is_clipped():
    table = dp.Histogram.from_table(LOG, **COLUMNS, l0=2)
    first = dp.GaussianThreshold(sigma=30.0, delta=1e-6, l0=2).release(table)
    second = dp.mechanisms.Refinement(of=first, rho=0.5).release(table)
    assert second.clipped
    assert second.measure == first.measure
    assert second.notes.count(first.measure) == 1


def test_releases_without_a_bound_are_not_clipped():
    claimed = dp.Histogram.from_counts(["a"], [5000], l0=1, linf=1, complete=True)
    made = dp.GaussianThreshold(sigma=5.0, delta=1e-6, l0=1).release(claimed)
    assert not made.clipped
    assert made.measure == "counts of users"
    assert made.interval(0.95)["low"][0] > 4900


def test_the_noise_of_a_mechanism_decides_the_interval():
    table = dp.Histogram.from_counts(["a"], [5000], l0=1, linf=1, complete=True)
    for mechanism, law in (
        (dp.LaplaceThreshold.from_epsilon(epsilon=0.1, delta=1e-6, l0=1), "laplace"),
        (dp.TruncatedGeometric(epsilon=0.1, delta=1e-6), "laplace"),
        (dp.GaussianThreshold.from_rho(rho=0.005, delta=1e-6, l0=1), "gaussian"),
        (
            dp.mechanisms.KnownItems(
                mechanism=dp.LaplaceThreshold.from_epsilon(epsilon=0.1, delta=1e-6, l0=1), items=("a",)
            ),
            "laplace",
        ),
    ):
        assert mechanism.release(table, rng=seeded_rng(1)).noise == law
