"""Bounded noise: the reference with the same random words, and the distribution."""

import numpy as np
import pytest

from discreet import _core
from discreet.errors import ParameterError
from discreet.reference.noise import bounded_beta
from discreet.testing import seeded_rng

CASES = [(1, 0), (1, 5), (2, 1), (7, 3), (189, 8), (471, 4), (2**31, 2), (50, 1000)]


@pytest.mark.parametrize(("reach", "power"), CASES)
def test_reference_and_kernel_read_the_same_words(reach, power):
    same_rng = seeded_rng(5)
    expected = [bounded_beta(same_rng, reach, power) for _ in range(40)]
    assert seeded_rng(5).bounded_beta(reach, power, 40).tolist() == expected


@pytest.mark.parametrize(("reach", "power", "wrong"), [(5, 3, 4), (30, 8, 9), (12, 1, 2)])
def test_draws_follow_the_distribution_and_no_other(reach, power, wrong):
    x = np.arange(1 - reach, reach)
    n = 200_000
    seen = np.bincount(seeded_rng(9).bounded_beta(reach, power, n) + reach - 1, minlength=2 * reach - 1)

    def distance(power):
        weights = (reach**2 - x.astype(float) ** 2) ** power
        expected = n * weights / weights.sum()
        cells = expected >= 25
        return float((((seen - expected) ** 2 / expected)[cells]).sum() - cells.sum()) / np.sqrt(2 * cells.sum())

    assert abs(distance(power)) < 6
    assert distance(wrong) > 50


@pytest.mark.parametrize(("reach", "power"), [(0, 1), (2**31 + 1, 1), (5, 1001)])
def test_parameters_out_of_range_are_refused(reach, power):
    with pytest.raises(ParameterError, match="reach"):
        _core.Rng().bounded_beta(reach, power, 1)
