"""Releases of real words, if the variable DISCREET_DATA names a folder with the datasets."""

import numpy as np
from numpy_rng import NumpyRng
from real import dataset

import discreet as dp
from discreet.engines import local
from discreet.reference.private_count_release import private_count_release
from discreet.testing import seeded_rng
from discreet.theorems import rogers2024

MECHANISM = dp.PrivateCountRelease(rho=1.0, delta=1e-6)


def words(name):
    path = dataset(name)
    labels, counts, _ = local.histogram(local.Table(path, user="user", item="item"))
    truth = dict(zip(labels.take(np.arange(len(counts))), counts.tolist(), strict=True))
    return dp.Histogram.from_table(path, user="user", item="item"), truth


def numpy_releases(truth, seed):
    counts = np.sort(np.fromiter(truth.values(), np.int64))[::-1]
    calls = rogers2024.most_calls(MECHANISM.delta, MECHANISM.delta_star)
    budget = rogers2024.budget_units(MECHANISM.rho)
    return len(private_count_release(counts, None, MECHANISM.levels, budget, calls, MECHANISM.k_bar, NumpyRng(seed))[0])


def share_far_off(release, truth):
    true = np.array([truth[item] for item in release.items])
    return np.mean(np.abs(release.counts - true) > 0.1 * true)


def test_chat_words_are_released_as_often_as_by_numpy():
    histogram, truth = words("ubuntu_irc_words")
    releases = [MECHANISM.release(histogram, rng=seeded_rng(seed)) for seed in range(60)]
    ours = np.array([len(release) for release in releases])
    numpys = np.array([numpy_releases(truth, seed) for seed in range(30)])
    assert abs(ours.mean() - 650) < 10
    assert 5 < ours.std() < 14
    assert abs(ours.mean() - numpys.mean()) < 5 * np.sqrt(ours.var() / 60 + numpys.var() / 30)
    assert np.mean([share_far_off(release, truth) for release in releases]) < 0.1


def test_reddit_words_are_released_as_often_as_expected():
    histogram, truth = words("reddit_top_selfposts_words")
    assert len(truth) == 588_921
    releases = [MECHANISM.release(histogram, rng=seeded_rng(seed)) for seed in range(20)]
    # One release has 3,289 items on average, with a standard deviation of 38.
    assert abs(np.mean([len(release) for release in releases]) - 3289) < 5 * 38 / np.sqrt(20)
    assert np.mean([share_far_off(release, truth) for release in releases]) < 0.1
    assert max(release.spent.rho for release in releases) <= 1
