"""A selection of items, followed by sums of the selected items, as one mechanism; and sums of l0 items per user."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from counting import clipped_sums
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet import Release
from discreet.errors import ParameterError
from discreet.mechanisms import ClippedSums, DiscoverAndSum
from discreet.reference import clipped_sums as reference
from discreet.tables import Table
from discreet.testing import seeded_rng

COLUMNS = ("user", "item", "value")


def table(rows):
    users, items, values = zip(*rows, strict=True) if rows else ((), (), ())
    return {"user": np.array(users, np.int64), "item": np.array(items, np.int64), "value": np.array(values, float)}


def sums(rows, l0, items=(0, 1, 2, 3), bounds=(-3, 5)):
    return clipped_sums(table(rows), columns=COLUMNS, items=list(items), bounds=bounds, resolution=1.0, l0=l0)


rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(-9, 9)), max_size=25)


def possible(rows, l0):
    """Return the sums of every choice of l0 items by every user, as the reference adds them up."""
    found = {(0, 0, 0, 0)}
    for user in {row[0] for row in rows}:
        own = [row for row in rows if row[0] == user]
        orders = itertools.permutations(range(4))
        sums = {
            tuple(
                reference.clipped_sums(
                    own, range(4), (-3, 5), Fraction(1), l0, lambda _, item, order=order: order[item]
                )
            )
            for order in orders
        }
        found = {tuple(map(sum, zip(one, other, strict=True))) for one in found for other in sums}
    return found


@settings(max_examples=40, deadline=None)
@given(rows=rows, l0=st.integers(1, 5))
def test_sums_are_those_of_the_reference_for_some_choice_of_items(rows, l0):
    expected = possible(rows, l0)
    assert tuple(sums(rows, l0)) in expected
    assert l0 < 4 or len(expected) == 1


def test_each_users_items_are_chosen_uniformly():
    everyone = [(user, item, 1) for user in range(6000) for item in range(4)]
    # 8 counts with 7 standard deviations each: correct code fails with a chance of 3e-11.
    # A user who keeps an item with a chance of 0.29 instead of 0.25 fails.
    found = np.array(sums(everyone, 1))
    assert found.sum() == 6000
    assert np.all(np.abs(found - 1500) < 7 * math.sqrt(6000 * 3 / 16))
    pairs = sums(everyone, 2)
    assert sum(pairs) == 12_000
    assert np.all(np.abs(np.array(pairs) - 3000) < 7 * math.sqrt(6000 / 4))


def test_each_call_chooses_other_items():
    # 400 users each choose one of two items of their own: two keys choose alike with a chance of 2^-400.
    rows = [(user, item, 1) for user in range(400) for item in (2 * user, 2 * user + 1)]
    assert sums(rows, 1, range(800)) != sums(rows, 1, range(800))


def test_text_and_bytes_users_are_chosen_for_alike():
    pyarrow = pytest.importorskip("pyarrow")
    users = [f"u{user}" for user in range(900)] * 2
    for column in (pyarrow.array(users), pyarrow.array([user.encode() for user in users])):
        data = pyarrow.table({"user": column, "item": [0] * 900 + [1] * 900, "value": [1] * 1800})
        found = clipped_sums(data, columns=COLUMNS, items=[0, 1], bounds=(0, 5), resolution=1.0, l0=1)
        assert sum(found) == 900
        # 2 counts with 7 standard deviations: a chance of 5e-12.
        assert abs(found[0] - 450) < 7 * 15


def shops(users=3000):
    """Return users who visit up to two of the common shops 0 and 1, and each a shop of their own."""
    rows = [(user, shop, 7.0) for user in range(users) for shop in (0, 1, 1000 + user) if shop or user % 2]
    return table(rows)


def test_selection_and_sums_are_one_release_with_one_guarantee():
    mechanism = DiscoverAndSum.from_rho(rho=1.0, delta=1e-6, l0=3, low=0, high=5)
    release = mechanism.release(shops(), user="user", item="item", value="value", rng=seeded_rng(3))
    counts = dict(release)
    assert set(counts) == {0, 1}
    # Values are clipped to five.
    assert abs(counts[1] - 15_000) < 6 * release.sigmas[0]
    assert abs(counts[0] - 7_500) < 6 * release.sigmas[0]
    assert release.guarantee == release.spent == mechanism.guarantee
    assert (release.guarantee.rho, release.guarantee.delta) == (1.0, 1e-6)
    assert release.made_by == repr(mechanism)
    assert any("sums of value in steps of 1" in note for note in release.notes)


@settings(max_examples=60, deadline=None)
@given(
    rho=st.floats(1e-9, 10_000),
    l0=st.integers(1, 2000),
    low=st.integers(-(2**95), 2**95 - 1),
    width=st.integers(1, 2**90),
    values=st.lists(st.integers(-(2**95), 2**95), min_size=1, max_size=4),
)
def test_a_users_part_of_any_bounds_is_paid_by_rho(rho, l0, low, width, values):
    high = min(low + width, 2**95)
    made = ClippedSums(items=range(l0), rho=rho, low=low, high=high, resolution=2**-32).measured
    part = reference.rounded(max(low, min(high, sum(values))), made.shift)
    assert l0 * Fraction(part) ** 2 / (2 * Fraction(made.sigmas[0]) ** 2) <= Fraction(rho)
    # Rounding takes less than 2^-28 of the noise, or 2^-29 of the bound.
    bound = max(abs(low), abs(high))
    assert 2**made.shift - 1 <= max(bound / 2**29, made.sigmas[0] * 2.0**made.shift / 2**28)
    assert made.sigmas[0] <= 1e9


WIDE = st.one_of(
    st.floats(), st.integers(-(2**70), 2**70).map(float), st.sampled_from([2.0**63, 5e-324, 0.5, 1.5, -2.5])
)


@settings(max_examples=80, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1), WIDE), max_size=12),
    resolution=st.sampled_from([2.0**-32, 1.0, 0.5, 2.0**20]),
    high=st.integers(1, 2**95),
)
def test_sums_in_fine_steps_are_those_of_the_reference(rows, resolution, high):
    shift = max(0, high.bit_length() - 31)
    options = {"items": [0, 1], "bounds": (-high // 2, high), "resolution": resolution, "shift": shift}
    expected = reference.clipped_sums(rows, [0, 1], options["bounds"], Fraction(resolution), 2, lambda *_: 0, shift)
    assert clipped_sums(table(rows), columns=COLUMNS, **options) == expected
    assert clipped_sums(table(rows[::-1]), columns=COLUMNS, **options) == expected


def test_a_bound_is_found_from_the_rows_with_a_value():
    # Each user has values for 3 shops, and 40 rows without a value. Seeded: rho leaves no doubt about 3.
    rows = [(user, shop, 5 if shop < 3 else None) for user in range(3000) for shop in range(43)]
    user, item, value = map(list, zip(*rows, strict=True))
    table = Table({"user": user, "item": item, "value": value}, user="user", item="item", value="value")
    release = DiscoverAndSum(rho=50, delta=1e-6, l0=None, low=0, high=5).release(table, rng=seeded_rng(3))
    assert release.l0 == 3
    assert {shop: abs(total - 15_000) < 100 for shop, total in release} == {0: True, 1: True, 2: True}
    assert any("l0 = 3 was found" in note for note in release.notes)


def exact_law(mechanism, tables, items):
    """Return the probability of each selected set and, for each set, the means and the scale of its sums."""
    chances = []
    for counts, totals in tables:
        law = {}
        for chosen in itertools.product((False, True), repeat=len(items)):
            parts = (
                mechanism.release_chance(n) if yes else 1 - mechanism.release_chance(n) if n else 1.0
                for n, yes in zip(counts, chosen, strict=True)
            )
            names = tuple(item for item, yes in zip(items, chosen, strict=True) if yes)
            means = [total for total, yes in zip(totals, chosen, strict=True) if yes]
            possible = all(n for n, yes in zip(counts, chosen, strict=True) if yes)
            law[names] = (math.prod(parts) if possible else 0.0, means)
        chances.append(law)
    return chances


def sigma_of_sums(mechanism, number):
    """Return the noise of the sums of so many selected items."""
    return mechanism.steps[-1].measured(min(number, mechanism.l0), mechanism.l0).sigma


def divergence(mechanism, first, second, order, *, sigma_of=None):
    """Return the Renyi divergence of both steps, given that no novel item is selected, over its order.

    The selection is by item, without the noisy counts. The sums of a set of selected items are Gaussian. Their
    divergence is order |difference|^2/(2 sigma^2).
    """
    total = 0.0
    for names, (p, means) in first.items():
        q, others = second[names]
        if not p or not q or not names:
            total += p**order * q ** (1 - order) if p and q else 0.0
            continue
        sigma = sigma_of_sums(mechanism, len(names)) if sigma_of is None else sigma_of(names)
        inner = order * sum((a - b) ** 2 for a, b in zip(means, others, strict=True)) / (2 * sigma**2)
        total += math.exp(order * math.log(p) + (1 - order) * math.log(q) + (order - 1) * inner)
    return math.log(total) / (order - 1) / order


@pytest.mark.parametrize("l0", [1, 2])
def test_the_exact_law_of_both_steps_keeps_rho(l0):
    mechanism = DiscoverAndSum(rho=0.8, delta=1e-3, l0=l0, low=0, high=5, share=0.2)
    counts, sums = [60, 30, 6][: l0 + 1], [90, 40, 11][: l0 + 1]
    moved = [1 if place < l0 else 0 for place in range(l0 + 1)]
    before = (counts, sums)
    after = ([n + m for n, m in zip(counts, moved, strict=True)], [s + 5 * m for s, m in zip(sums, moved, strict=True)])
    first, second = exact_law(mechanism, (before, after), range(l0 + 1))
    for order in (1.01, 1.5, 2.0, 8.0):
        for p, q in ((first, second), (second, first)):
            assert 0.2 * mechanism.rho < divergence(mechanism, p, q, order) <= mechanism.rho

    def half_of_the_bound(names):
        return sigma_of_sums(mechanism, len(names)) / 2

    def noise_of_one_item(names):
        return sigma_of_sums(mechanism, 1) / math.sqrt(l0)

    # Wrong variants: noise for half of the largest value, and for one of l0 items.
    for wrong in (half_of_the_bound, noise_of_one_item)[:l0]:
        assert divergence(mechanism, first, second, 1.01, sigma_of=wrong) > mechanism.rho


def test_a_table_without_common_items_gives_no_rows():
    # One user's item is released with a chance of delta.
    mechanism = DiscoverAndSum(rho=1.0, delta=1e-12, l0=1, low=0, high=5)
    empty = mechanism.release(table([(1, 1, 2.0)]), user="user", item="item", value="value")
    full = mechanism.release(shops(), user="user", item="item", value="value")
    assert len(empty) == 0 < len(full)
    assert [(name, kind) for name, _, kind in empty.columns] == [(n, k) for n, _, k in full.columns]


def test_sums_of_periods_and_of_several_columns_are_those_of_their_rows(tmp_path):
    day = np.array(["2026-01-01", "2026-01-02"], "M8[D]")
    data = {
        "user": [*range(4000)] * 2,
        "device": ["a"] * 8000,
        "day": np.repeat(day, 4000),
        "land": ["de", "fr"] * 4000,
        "page": ["home"] * 8000,
        "price": [2.0] * 4000 + [3.0] * 4000,
    }
    visits = Table(
        data, user=["user", "device"], item=["land", "page"], time="day", every="1d", value="price", memory="256MiB"
    )
    release = DiscoverAndSum(rho=1000, delta=1e-6, l0=2, low=0, high=9).release(visits, rng=seeded_rng(1))
    names = [(str(one), land, "home") for one in day for land in ("de", "fr")]
    assert sorted(release.items) == names
    expected = dict(zip(names, [4000, 4000, 6000, 6000], strict=True))
    assert all(abs(total - expected[item]) < 8 * release.sigmas[0] for item, total in release)
    empty = DiscoverAndSum(rho=1e-9, delta=1e-12, l0=2, low=0, high=9).release(visits, rng=seeded_rng(1))
    for made in (release, empty):
        assert [(name, kind) for name, _, kind in made.columns[:3]] == [
            *zip(("day", "land", "page"), ("date", "string", "string"), strict=True)
        ]
        made.write(tmp_path / "sums.parquet")
        assert Release.read(tmp_path / "sums.parquet").items == made.items
    known = ClippedSums(items=names[:1], rho=1000, low=0, high=9).release(visits, rng=seeded_rng(2))
    assert (known.items, known.item_type) == (names[:1], release.item_type)
    assert abs(known.counts[0] - 4000) < 8 * known.sigmas[0]


TOO_LARGE = r"of one user would have a scale of {}e\+09 times the bound, above 1e9; give a smaller l0 or .*epsilon"


@pytest.mark.parametrize(
    ("l0", "high", "rho", "share", "error"),
    [
        (6, 5, 1e-18, 0.5, r"sigma must be a number above 0\.001 and at most 1e\+09, not 2449489742\.78\d+"),
        (2**30, 2**20, 1e-9, 0.5, r"sigma must be a number above 0\.001 and at most 1e\+09, not 1036215143\.68\d+"),
        (6, 5, 1e-17, 0.9, f"the noise of 6 items {TOO_LARGE.format('1.73')}"),
        (2**30, 2**20, 2e-9, 0.9, f"the noise of 1,073,741,824 items {TOO_LARGE.format('1.64')}"),
    ],
)
def test_noise_that_is_too_large_for_l0_sums_is_refused_before_data_is_read(l0, high, rho, share, error):
    given = {"rho": rho, "delta": 1e-6, "l0": l0, "low": 0, "high": high, "share": share}
    with pytest.raises(ParameterError, match=f"^{error}$"):
        DiscoverAndSum(**given)


@settings(max_examples=60, deadline=None)
@given(
    rho=st.floats(1e-9, 10_000),
    l0=st.integers(1, 2000),
    high=st.integers(1, 2**95),
    share=st.floats(0.01, 0.99),
    size=st.integers(1, 2500),
)
def test_a_mechanism_that_was_made_sums_any_number_of_selected_items(rho, l0, high, share, size):
    try:
        mechanism = DiscoverAndSum(rho=rho, delta=1e-6, l0=l0, low=0, high=high, share=share)
    except ParameterError:
        return
    assert mechanism.steps[-1].measured(min(size, l0), l0).sigmas[0] <= 1e9
