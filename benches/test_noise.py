"""Draws of every distribution, compared with numpy and the installed peers; `benches/noise.py` interleaves them."""

import pytest

from noise import CASES, contestants


@pytest.mark.parametrize(("case", "name"), [(case, name) for case in CASES for name in CASES[case]])
def test_draws(benchmark, case, name):
    ready = contestants(case)
    if name not in ready:
        pytest.skip(f"{name} is not installed")
    draw, size = ready[name]
    benchmark.group = case
    benchmark.extra_info["draws"] = size
    benchmark(draw, size)
