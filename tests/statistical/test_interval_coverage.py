"""Full-size tests of intervals: 95 % intervals contain 93 to 97 % of the true counts, for every mechanism."""

import pytest
from intervals import CASES, coverage

pytestmark = pytest.mark.statistical


@pytest.mark.parametrize("name", CASES)
def test_intervals_contain_the_true_counts_over_200_runs(name):
    assert 0.93 <= coverage(name, runs=200) <= 0.97
