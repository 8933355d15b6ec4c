"""The number and the accuracy of the items that ConfirmedCounts releases, compared with PrivateCountRelease.

A count is good if it is within 10 % of the truth. Real data is used if it is available (see test_real_data.py).
"""

import numpy as np
import pytest
from real import dataset

import discreet as dp
from discreet.engines import local
from discreet.testing import seeded_rng

# Data; rho; mean number of released items and of good counts, measured by another program.
EXPECTED = [
    ("tiny_retail_500", 1.0, 81.25, 74.67),
    ("askreddit_1pct_words", 0.1, 77.5, 71.67),
    ("askreddit_1pct_words", 1.0, 174.9, 162.7),
    ("ubuntu_irc_words", 0.1, 531.1, 498.2),
    ("ubuntu_irc_words", 1.0, 1075, 1014),
    ("wiki_intros_words", 0.1, 858.2, 805.8),
    ("wiki_intros_words", 0.5, 1559, 1467),
    ("wiki_intros_words", 1.0, 2008, 1891),
    ("poetry_author_bigrams", 0.1, 108.8, 101.2),
    ("poetry_author_bigrams", 1.0, 457.6, 430.8),
    ("reddit_top_selfposts_words", 0.1, 2993, 2815),
    ("reddit_top_selfposts_words", 1.0, 5814, 5481),
]
FEW = ("askreddit_1pct_words", "ubuntu_irc_words")


def zipf(users, items, exponent, seed):
    """Return counts by Zipf's law. About 90 % of the users have the most common item."""
    mean = 0.9 * users / np.arange(1, items + 1) ** exponent
    return np.sort(np.random.default_rng(seed).poisson(mean).clip(max=users))[::-1]


def runs(mechanism, histogram, truth, count):
    """Return figures over several releases.

    The figures are the mean numbers of items and of good counts, the root of the mean squared relative error, and the
    share of counts that are not good.
    """
    found = []
    for seed in range(count):
        release = mechanism.release(histogram, rng=seeded_rng(seed))
        errors = release.counts / np.array([truth[item] for item in release.items]) - 1
        good = int((abs(errors) <= 0.1).sum())
        found.append((len(release), good, float(np.mean(errors**2)), len(release) - good))
    named, good, squares, bad = np.mean(found, axis=0)
    return named, good, np.sqrt(squares), bad / named


@pytest.mark.parametrize(
    ("name", "rho", "named", "good"),
    [pytest.param(*row, marks=[] if row[0] in FEW else pytest.mark.statistical) for row in EXPECTED],
)
def test_real_items_are_named_as_often_as_expected(name, rho, named, good):
    path = dataset(name)
    labels, counts, _ = local.histogram(local.Table(path, user="user", item="item"))
    truth = dict(zip(labels.take(np.arange(len(counts))), counts.tolist(), strict=True))
    histogram = dp.Histogram.from_table(path, user="user", item="item", count_users=True)
    found = runs(dp.ConfirmedCounts(rho=rho, delta=1e-6), histogram, truth, 12)
    assert found[0] == pytest.approx(named, rel=0.05)
    assert found[1] == pytest.approx(good, rel=0.05)


SHAPES = [(20_000, 5_000, 1.0), (200_000, 50_000, 1.0), (50_000, 20_000, 0.8), (1_000_000, 30_000, 1.3)]


@pytest.mark.parametrize(
    "users, items, exponent", [*SHAPES[:2], *(pytest.param(*s, marks=pytest.mark.statistical) for s in SHAPES[2:])]
)
@pytest.mark.parametrize("rho", [0.1, 1.0])
def test_confirmed_counts_gives_more_good_counts(users, items, exponent, rho):
    counts = zipf(users, items, exponent, 1)
    truth = dict(enumerate(counts.tolist()))
    histogram = dp.Histogram.from_counts(list(truth), counts, l0=None, linf=1, complete=True, users=users)
    named, good, deviation, beyond = runs(dp.ConfirmedCounts(rho=rho, delta=1e-6), histogram, truth, 6)
    others = runs(dp.PrivateCountRelease(rho=rho, delta=1e-6), histogram, truth, 6)
    assert named > 15
    assert good > 1.5 * others[1]
    assert deviation <= 0.066
    assert beyond <= 0.11


@pytest.mark.parametrize("delta", [1e-4, 1e-9, 1e-15])
@pytest.mark.parametrize("error", [0.02, 0.1, 0.3])
@pytest.mark.parametrize("rho", [0.003, 0.1, 3.0, 30.0])
def test_no_parameters_give_much_fewer_good_counts(rho, error, delta):
    counts = zipf(50_000, 20_000, 1.0, 2)
    truth = dict(enumerate(counts.tolist()))
    histogram = dp.Histogram.from_counts(list(truth), counts, l0=None, linf=1, complete=True, users=50_000)
    parameters = {"rho": rho, "delta": delta, "relative_error": error}
    ours = runs(dp.ConfirmedCounts(**parameters), histogram, truth, 2)
    try:
        others = runs(dp.PrivateCountRelease(**parameters, meet_relative_error=True), histogram, truth, 2)
    except dp.errors.ParameterError:
        return
    assert ours[1] >= 0.9 * others[1] - 2
