"""Exact samplers: their draws equal those of the reference, and their distributions are verified without sampling.

A sampler reads random words of 32 bits. Its table divides the interval from 0 to 1 into cells, one for each magnitude.
If the noise is wide, a cell is for a block of consecutive magnitudes. The sampler then draws a place within the block,
and accepts or rejects the place (`discreet/reference/noise.py`).
"""

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import _core
from discreet.errors import ParameterError
from discreet.reference import noise
from discreet.testing import seeded_rng

# Every sampler, with parameters for each of its methods: tables, blocks, places of 32 or 64 bits, and limits.
LAWS = [
    *(("discrete_gaussian", (scale,)) for scale in (1e-3, 0.3, 7.3, 1023.9, 1024.0, 8388608.5, 1e9)),
    *(("discrete_laplace", (scale,)) for scale in (2.0**-20, 1.0, 333.3, 5e4, 2.0**45)),
    *(("truncated_geometric", both) for both in ((1.0, 11), (1.0, 0), (1e12, 5), (1e4, 123_456), (1e9, 70_001))),
]


def names(law):
    return f"{law[0]}{law[1]}".replace(" ", "")


def drawn(rng, law, size):
    name, parameters = law
    return rng.sample(getattr(_core.Noise, name)(*parameters), size).tolist()


@pytest.mark.parametrize("draws", [50_000, pytest.param(1_000_000, marks=pytest.mark.statistical)])
@pytest.mark.parametrize("law", LAWS, ids=names)
def test_draws_equal_those_of_the_rational_reference(law, draws):
    name, parameters = law
    draws = 1_000_000 if law == ("discrete_laplace", (1.0,)) else draws
    ours, same_rng = seeded_rng(1), seeded_rng(1)
    reference = getattr(noise, name)(*parameters)
    assert drawn(ours, law, draws) == [reference.draw(same_rng) for _ in range(draws)]
    assert ours.bits64() == same_rng.bits64()


scales = st.floats(1e-3, 1e9)
ANY = {"scale": scales, "bound": st.integers(0, 10**7), "seed": st.integers(0, 2**64 - 1)}
ANY["parts"] = st.lists(st.integers(0, 9))


@settings(max_examples=20, deadline=None)
@given(**ANY)
def test_any_parameters_and_sizes_draw_as_the_reference(scale, bound, seed, parts):
    check_draws(scale, bound, seed, parts)


@pytest.mark.statistical
@settings(max_examples=1000, deadline=None)
@given(**ANY)
def test_a_thousand_parameters_draw_as_the_reference(scale, bound, seed, parts):
    check_draws(scale, bound, seed, parts)


def check_draws(scale, bound, seed, parts):
    for name, parameters in [
        ("discrete_gaussian", (scale,)),
        ("discrete_laplace", (scale,)),
        ("truncated_geometric", (scale, bound)),
    ]:
        ours, same_rng = seeded_rng(seed), seeded_rng(seed)
        reference = getattr(noise, name)(*parameters)
        for size in parts:
            assert drawn(ours, (name, parameters), size) == [reference.draw(same_rng) for _ in range(size)]
        assert ours.bits64() == same_rng.bits64()


@pytest.mark.parametrize(
    ("scale", "bound"),
    [
        (scale, bound)
        for scale in (2.0**18, 2.0**33, 2.0**45)
        for bound in (2**10, 2**15, 2**20, 2**22, 2**30, 2**41, 2**46)
        if bound < scale * 2**15  # larger bounds have the same table
    ],
)
def test_words_at_the_edge_of_acceptance_draw_as_the_reference(scale, bound):
    # One word holds the place and the bits that decide its acceptance. These bits are all or nearly all ones here.
    reference, law = noise.truncated_geometric(scale, bound), _core.Noise.truncated_geometric(scale, bound)
    bits = reference.block_bits
    wide, ones = bits > noise.NARROW, 2**32 - 1
    for first in (2**30, 3 * 2**29, 2**32 - 2**20):
        for place in (0, 1, 2**bits - 1):
            for short in range(4):
                uniform = (2 ** (64 if wide else 32) - 1) - (short << bits)
                word = uniform >> bits << bits | place
                words = [first, *([word & ones, word >> 32] if wide else [word]), *[ones] * 6, *[0] * 40]
                ours, same_rng = _core.Rng.scripted(words), _core.Rng.scripted(words)
                assert ours.sample(law, 1).tolist() == [reference.draw(same_rng)]
                assert ours.bits64() == same_rng.bits64()


# The exact probability of a value follows from the words at which the drawn value changes: a bisection finds them.


def prefix_words(prefix, bits):
    """Return words with the binary digits of a number: 31 digits and a sign bit of 0, then 64 digits at a time."""
    words = [(prefix >> (bits - 31)) << 1]
    for taken in range(31, bits, 64):
        part = (prefix >> (bits - taken - 64)) & (2**64 - 1)
        words += [part & (2**32 - 1), part >> 32]
    return words


def cell_edge(law, cell, bits=95):
    """Return the largest number of `bits` bits whose words make the sampler draw a value of at most `cell`."""
    low, high = -1, 2**bits - 1
    while low < high:
        middle = (low + high + 1) // 2
        # All later bits are ones. So a number whose first digits equal those of the edge lies beyond the edge.
        value = _core.Rng.scripted([*prefix_words(middle, bits), *[2**32 - 1] * 8]).sample(law, 1)[0]
        low, high = (middle, high) if value <= cell else (low, middle - 1)
    return low


@pytest.mark.parametrize(
    ("law", "weight", "limit"),
    [
        (_core.Noise.discrete_gaussian(1.5), lambda x: mpmath.exp(-x * x / mpmath.mpf("4.5")), None),
        (_core.Noise.discrete_laplace(2.0), lambda x: mpmath.exp(-x / mpmath.mpf(2)), None),
        (_core.Noise.truncated_geometric(2.0, 4), lambda x: mpmath.exp(-x / mpmath.mpf(2)), 4),
        (_core.Noise.truncated_geometric(1e9, 3), lambda x: mpmath.exp(-x / mpmath.mpf(10**9)), 3),
    ],
    ids=["gaussian", "laplace", "geometric", "wide geometric"],
)
def test_each_value_has_the_words_of_its_probability(law, weight, limit):
    with mpmath.workdps(60):
        top = 400 if limit is None else limit
        weights = [weight(x) * (2 if x else 1) for x in range(top + 1)]
        total = mpmath.fsum(weights)
        for cell in range(min(top, 8) + (limit is None)):
            exact = mpmath.fsum(weights[: cell + 1]) / total * 2**95
            # The coefficient has 64 bits, which changes probabilities by at most 2^-62.
            assert abs(cell_edge(law, cell) + 1 - exact) <= 2**35


def test_the_edges_of_cells_are_exact_to_the_last_bit():
    for name, parameters in [
        ("discrete_gaussian", (1.5,)),
        ("discrete_laplace", (3.0,)),
        ("truncated_geometric", (0.7, 6)),
    ]:
        law, reference = getattr(_core.Noise, name)(*parameters), getattr(noise, name)(*parameters)
        for cell in range(6):
            assert cell_edge(law, cell) == (reference.ends[cell] >> (noise.PLACES - 95)) - 1


def test_places_in_a_block_are_accepted_with_exact_probability():
    sigma = 4096.0
    law = _core.Noise.discrete_gaussian(sigma)
    reference = noise.discrete_gaussian(sigma)
    bits = reference.block_bits
    block = 40
    first = (reference.firsts[block - 1] + reference.firsts[block]) // 2 << 1
    for place in (1, 17, 2**bits - 1):
        value = (block << bits) + place

        width = 32 - bits
        x = Fraction(reference.c) * (value**2 - (block << bits) ** 2)
        exact = noise._exp_neg(x, 300) * 2 ** (width + 64)
        ambiguous = {int(exact) >> 64}

        def accepted(uniform, place=place, value=value, ambiguous=ambiguous):
            # If the place is rejected, the remaining words make the sampler draw zero.
            upper, lower = uniform >> 64, uniform & (2**64 - 1)
            words = [first, upper << bits | place, lower & (2**32 - 1), lower >> 32, 0, 2**32 - 2**bits, 0, 0]
            words = words if upper in ambiguous else [first, upper << bits | place, 0, 0, 0, 0]
            return _core.Rng.scripted(words).sample(law, 1)[0] == value

        low, high = -1, 2 ** (width + 64) - 1
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if accepted(middle) else (low, middle - 1)
        assert low == int(exact) - 1


@settings(max_examples=200, deadline=None)
@given(x=st.floats(0, 50), seed=st.integers(0, 2**64 - 1))
def test_rust_and_python_draw_the_same_bernoulli_values(x, seed):
    ours, same_rng = seeded_rng(seed), seeded_rng(seed)
    assert ours.bernoulli_exp(x) == noise.bernoulli_exp(same_rng, Fraction(x))
    assert ours.bits64() == same_rng.bits64()


@pytest.mark.parametrize("x", [0.7, 22 / 7, 60.0])
def test_bernoulli_is_true_for_exactly_its_share_of_words(x):
    def heads(number):
        words = [number >> shift & (2**32 - 1) for shift in (64, 96, 0, 32)]
        return _core.Rng.scripted([*words, *[2**32 - 1] * 80]).bernoulli_exp(x)

    low, high = -1, 2**128 - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if heads(middle) else (low, middle - 1)
    assert low == int(noise._exp_neg(Fraction(x), 300) * 2**128) - 1


class ChosenBits:
    """A stream of bits that the test chooses."""

    def __init__(self, *words):
        self.words = list(words)

    def bits64(self):
        return self.words.pop(0)


def test_a_bernoulli_draw_reads_more_words_while_digits_tie():
    digits = noise._exp_neg(Fraction(1), 300) * Fraction(2) ** 128
    first, second = int(digits) >> 64, int(digits) % 2**64
    assert noise.bernoulli_exp(ChosenBits(first, second - 1), Fraction(1))
    assert not noise.bernoulli_exp(ChosenBits(first, second + 1), Fraction(1))


@pytest.mark.parametrize(
    ("sigma", "variance"), [(0.5, 0.21501267508814), (1.0, 0.99999978876773), (9.25**0.5, 9.25), (1e6, 1e12)]
)
def test_gaussian_draws_have_the_discrete_variance(sigma, variance):
    draws = seeded_rng(3).discrete_gaussian(sigma, 4_000_000).astype(float)
    assert draws.var() == pytest.approx(variance, rel=6 * math.sqrt(2 / len(draws)) + 1e-3 * (sigma < 1))
    assert abs(draws.mean()) < 6 * math.sqrt(variance / len(draws))


BAD = [
    *(("discrete_gaussian", (scale,)) for scale in (0, -1, math.nan, math.inf, 1e-4, 1e10)),
    *(("discrete_laplace", (scale,)) for scale in (2.0**-21, math.nan, 2.0**46)),
    *(("truncated_geometric", both) for both in ((1.0, -1), (1.0, 2**53), (math.inf, 3))),
]


@pytest.mark.parametrize("law", BAD, ids=names)
def test_parameters_out_of_range_are_refused(law):
    with pytest.raises(ParameterError):
        drawn(seeded_rng(1), law, 1)


def test_the_scale_of_the_noise_is_never_below_the_parameter():
    for scale in [1e-3, 0.1, 1 / 3, 1.0, 7.7, 1e3, 123_456.7, 1e9]:
        gaussian, laplace = noise.discrete_gaussian(scale).c, noise.discrete_laplace(scale).c
        assert 0 <= 1 - gaussian * 2 * Fraction(scale) ** 2 < Fraction(2) ** -62
        assert 0 <= 1 - laplace * Fraction(scale) < Fraction(2) ** -62
