"""Releases whose guarantee is exactly the total of a budget, and equal shares of a budget.

A verb is a function of the public interface that releases data, such as `count`.
"""

import math
import random
from contextlib import suppress
from copy import copy
from fractions import Fraction

import numpy as np
import pytest
from small import histogram, top

import discreet as dp
from discreet import (
    Budget,
    BudgetExceeded,
    CalibratedCounts,
    GaussianThreshold,
    Guarantee,
    GumbelTopK,
    Histogram,
    LaplaceThreshold,
    Ledger,
    PrivateCountRelease,
    TruncatedGeometric,
)
from discreet.budgets import ledger_format
from discreet.errors import ParameterError
from discreet.mechanisms import (
    Aggregates,
    ClippedSums,
    ConfirmedCounts,
    ContributionBound,
    CountsWithFoundBound,
    CountsWithShare,
    DiscoverAndSum,
    GaussianCounts,
    OptimalSelection,
    SumsWithFoundBounds,
)
from discreet.mechanisms.counts import calibrated_counts, confirmed_counts
from discreet.planning.choose import choose
from discreet.privacy.guarantee import RHO_LIMIT
from discreet.queries.choose import choose_answers
from discreet.testing import seeded_rng
from discreet.theorems.rogers2024 import UNIT, units_rho

LOG = {"user": [user for user in range(3000) for _ in range(2)], "item": ["home", "search"] * 3000}
COLUMNS = {"user": "user", "item": "item"}


def chosen(verb, **parameters):
    return lambda **promise: choose(verb, **promise, **parameters)[0]


def made(kind, **parameters):
    return lambda **promise: (kind.from_rho if "rho" in promise else kind.from_epsilon)(**promise, **parameters)


MECHANISMS = {
    "count": chosen("count"),
    **{f"count l0={l0}": chosen("count", l0=l0) for l0 in (1, 3, 50)},
    "count with a found l0": made(CountsWithFoundBound),
    "count with a share": made(CountsWithShare, l0=3),
    **{f"top_k k={k}": chosen("top_k", k=k) for k in (1, 10)},
    "top_k discover+peel": chosen("top_k", k=3, method="discover+peel", l0=2),
    **{f"select l0={l0}": chosen("select", l0=l0) for l0 in (1, 3, 7)},
    **{f"select {name}": chosen("select", l0=3, method=name) for name in ("threshold", "dp_sips", "weighted_gaussian")},
    "aggregate": made(Aggregates, l0=2, rows=3),
    "sum": made(DiscoverAndSum, l0=2, low=0, high=9),
    "sum with found bounds": made(SumsWithFoundBounds, l0=2),
}
# These mechanisms take 20 milliseconds or more to find.
SLOW = [name for name in MECHANISMS if name.startswith(("select", "count l0", "count with a share", "sum with"))]
EXTREMES = [(1e-6, 1e-12), (1e-3, 1e-37), (1e-2, 1e-30), (0.1, 0.9), (1.0, 1e-6), (50.0, 1e-300), (100.0, 0.5)]
EXTREMES += [(1000.0, 1e-9), (999.0, 0.999), (1e-9, 1e-3), (5e-324, 1e-6), (1e-12, 1e-38)]


def promises(number, seed):
    """Return pairs of epsilon and delta: a third of the extreme pairs, and random pairs of usual and of any size."""
    chance = random.Random(seed)
    usual = [(chance.choice((0.1, 0.5, 1.0, 2.0, 3.0)), chance.choice((1e-4, 1e-6, 1e-9))) for _ in range(number // 4)]
    log = [(math.exp(chance.uniform(-3.9, 4.1)), chance.choice((1e-6, 3.3e-9, 7.77e-5))) for _ in range(number // 2)]
    wide = [(10 ** chance.uniform(-5, 2.9), 10 ** chance.uniform(-35, -0.1)) for _ in range(number // 4)]
    return [*EXTREMES[seed % 3 :: 3], *usual, *log, *wide]


@pytest.mark.parametrize(
    ("name", "number"),
    [(name, 24 if name in SLOW else 120) for name in MECHANISMS]
    + [pytest.param(name, 1000, marks=pytest.mark.statistical) for name in MECHANISMS],
)
def test_a_release_of_exactly_the_budget_fits_once(name, number):
    paid = 0
    for epsilon, delta in promises(number, [*MECHANISMS].index(name)):
        try:
            budget = Budget(epsilon=epsilon, delta=delta)
            mechanism = MECHANISMS[name](epsilon=epsilon, delta=delta)
        except ParameterError:  # a promise that the budget or the mechanism does not take
            continue
        assert budget.fits(mechanism), (epsilon, delta)
        assert mechanism.guarantee.epsilon(delta) <= epsilon
        budget.charge(mechanism)
        assert not budget.fits(mechanism), (epsilon, delta)
        paid += 1
    assert paid > 0.75 * number


@pytest.mark.parametrize("method", ["gaussian", "laplace", "bounded", "gumbel_correction", "auto"])
def test_answers_of_exactly_the_budget_fit(method):
    for epsilon, delta in [(0.1, 1e-6), (1.0, 1e-6), (3.0, 1e-9)]:
        mechanism, _ = choose_answers(30, None, epsilon, delta, method)
        assert Budget(epsilon=epsilon, delta=delta).fits(mechanism)


@pytest.mark.parametrize(
    ("verb", "more"),
    [(dp.count, {}), (dp.count, {"l0": 2}), (dp.top_k, {"k": 1}), (dp.select, {"l0": 1}), (dp.select, {"l0": 2})],
)
@pytest.mark.parametrize("promise", [(1.0, 1e-6), (0.0713, 3.3e-9), (23.7, 7.77e-5)])
def test_a_verb_with_exactly_the_budget_uses_it_up(verb, more, promise, tmp_path):
    promise = dict(zip(("epsilon", "delta"), promise, strict=True))
    ledger = Ledger.open(tmp_path / "ledger")
    for payer in (Budget(**promise), ledger.dataset("views", **promise)):
        assert not verb(LOG, **COLUMNS, **promise, **more, budget=payer).seeded
        with pytest.raises(BudgetExceeded):
            verb(LOG, **COLUMNS, **promise, **more, budget=payer)
    # A second opening of the file finds the same guarantee and no remaining budget.
    again = Ledger.open(tmp_path / "ledger").dataset("views", **promise)
    assert again.guarantee == Budget(**promise).guarantee
    assert not again.fits(Guarantee(2.0**-64, 0))


def test_a_release_of_the_whole_budget_fits_only_at_first():
    pair = Guarantee.from_dp(1.0, 1e-6)
    for before in (Guarantee(2.0**-64, 0), Guarantee(0, 2.0**-128), Guarantee(1e-3, 1e-9)):
        budget = Budget(epsilon=1.0, delta=1e-6)
        assert budget.fits(pair)
        whole = budget._account().price(pair)
        budget.charge(before)
        assert not budget.fits(pair)
        # A charge that was priced while the budget was fresh does not fit either.
        assert not budget._account().fits(whole)
        with pytest.raises(BudgetExceeded):
            budget.charge(pair)


def test_a_release_of_the_whole_budget_leaves_nothing():
    budget = Budget(epsilon=1.0, delta=1e-6)
    mechanism = GumbelTopK.from_epsilon(k=1, epsilon=1.0, delta=1e-6)
    assert mechanism.guarantee.rho > budget.remaining.rho
    budget.release(mechanism, histogram(), charge="spent")
    assert budget.remaining == Guarantee(0, 0)
    for cost in (Guarantee(2.0**-64, 0), Guarantee(0, 2.0**-128), Guarantee.from_dp(1e-6)):
        with pytest.raises(BudgetExceeded):
            budget.charge(cost)


def test_a_guarantee_larger_than_the_budget_is_refused():
    budget = Budget(epsilon=1.0, delta=1e-6)
    for epsilon, delta in [(math.nextafter(1.0, 2), 1e-6), (1.0, math.nextafter(1e-6, 1))]:
        assert not budget.fits(Guarantee.from_dp(epsilon, delta))
    assert not Budget(rho=0.1, delta=1e-6).fits(Guarantee.from_dp(1.0, 1e-6))
    assert not Budget(rho=0.1, delta=1e-6).fits(Guarantee(0.1, math.nextafter(1e-6, 1) * 2))


def test_a_guarantee_in_epsilon_covers_every_release():
    for epsilon, delta in [(0.01, 1e-9), (1.0, 1e-6), (8.0, 1e-6), (200.0, 0.01), (1000.0, 1e-6)]:
        promise = Budget(epsilon=epsilon, delta=delta).guarantee
        assert promise.dp == promise.quoted == (epsilon, delta)
        # Randomised response is (epsilon, delta)-DP, and its rho is at least this.
        assert promise.rho >= epsilon * math.tanh(epsilon / 2)
        assert promise.delta == delta
        left = Budget(epsilon=epsilon, delta=delta).remaining
        assert promise.rho >= left.rho
        after = Guarantee(math.nextafter(left.rho, RHO_LIMIT), math.nextafter(left.delta, 1))
        assert after.epsilon(delta) <= epsilon


def budgets(number):
    """Yield budgets in rho and in epsilon, of usual and extreme size."""
    chance = random.Random(3)
    yield from (Budget(rho=1.0, delta=1e-6), Budget(rho=1e-4, delta=0), Budget(rho=5000.0, delta=0.999))
    yield from (Budget(rho=2.0**-64, delta=2.0**-128), Budget(rho=1e-15, delta=1e-33), Budget(epsilon=1.0, delta=1e-6))
    for _ in range(number):
        yield Budget(rho=10 ** chance.uniform(-15, 3.6), delta=10 ** chance.uniform(-35, -0.01))
        yield Budget(epsilon=10 ** chance.uniform(-3, 2.9), delta=10 ** chance.uniform(-30, -0.2))


def test_the_whole_guarantee_of_a_budget_can_be_charged():
    for budget in budgets(200):
        assert budget.fits(budget.guarantee)
        assert budget.fits(budget.remaining)
        budget.charge(budget.guarantee)
        assert budget.remaining == Guarantee(0, 0)


@pytest.mark.parametrize("rho", [1.0, 0.1, 3e-4, 1e-4, 1e-15])
def test_a_release_of_the_whole_rho_fits_once(rho):
    budget = Budget(rho=rho, delta=1e-33)
    budget.charge(Guarantee(rho, 1e-33))
    assert not budget.fits(Guarantee(2.0**-64, 0))


def test_equal_shares_of_any_budget_all_fit():
    chance = random.Random(5)
    for budget in budgets(60):
        if budget.remaining.rho < 1e-12:
            continue
        budget.charge(Guarantee(budget.remaining.rho * chance.choice((0, chance.random() / 2)), 0))
        before = budget._account()
        shares = budget.split(n := chance.choice((1, 2, 3, 7, 10, 49, 100, 1000)))
        assert len(shares) == n
        assert len(set(shares)) == 1
        for share in shares:
            budget.charge(share)
        left = budget._account().total - budget._account().spent
        before = before.total - before.spent
        # Rounding reduces each share by less than one unit, or by one part in 2^53.
        assert 0 <= left.rho <= n + before.rho / 2**52
        assert 0 <= left.delta <= n + before.delta / 2**52


def test_equal_shares_divide_the_rest_and_keep_the_unit():
    budget = Budget(rho=1.0, delta=1e-6, unit="event", neighbours="replaced")
    budget.charge(Guarantee(0.5, 0, "event", neighbours="replaced"))
    first, second = budget.split(2)
    assert first == second == Guarantee(0.25, 5e-7, "event", neighbours="replaced")
    for n in (0, -1, 1.5, True, "2"):
        with pytest.raises(ParameterError):
            budget.split(n)
    budget.charge(budget.remaining)
    with pytest.raises(BudgetExceeded):
        budget.split(2)
    with pytest.raises(BudgetExceeded):
        Budget(rho=2.0**-60, delta=0).split(100)


def test_a_mechanism_from_a_share_fits_that_share():
    budget = Budget(epsilon=1.0, delta=1e-6)
    for share in budget.split(3):
        budget.release(PrivateCountRelease.from_rho(rho=share.rho, delta=share.delta), histogram())
    assert budget.remaining.rho < 1e-17
    budget = Budget(rho=0.7, delta=1e-6)
    for share in budget.split(3):
        budget.release(top(rho=share.rho, delta=share.delta), histogram())
    # A list states an epsilon of which four fit, but a share is one of rhos.
    for n in (2, 3, 7, 50):
        budget = Budget(epsilon=1.0, delta=1e-6)
        first, *others = budget.split(n)
        budget.release(GumbelTopK.from_rho(k=1, rho=first.rho, delta=1e-9), histogram())
        for share in others:
            budget.release(PrivateCountRelease.from_rho(rho=share.rho, delta=share.delta), histogram())


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_mechanism_from_a_rho_costs_at_most_that_rho(name):
    chance = random.Random(7)
    for _ in range(6 if name in SLOW else 20):
        rho, delta = chance.choice((0.1, 0.3, 10 ** chance.uniform(-4, 1))), 10 ** chance.uniform(-12, -4)
        with suppress(ParameterError):
            assert Budget(rho=rho, delta=delta).fits(MECHANISMS[name](rho=rho, delta=delta))


HALF = {"epsilon": 0.5, "delta": 5e-7}
HALVES = {
    **{f"count {l0}": lambda b, l0=l0: dp.count(LOG, **COLUMNS, **HALF, l0=l0, budget=b) for l0 in (None, 1, 2, 3)},
    **{f"count {l0}": lambda b, l0=l0: dp.count(LOG, **COLUMNS, **HALF, l0=l0, budget=b) for l0 in (10, 100, "auto")},
    "count of items": lambda b: dp.count(LOG, **COLUMNS, **HALF, items=["home"], budget=b),
    "count with a share": lambda b: dp.count(LOG, **COLUMNS, **HALF, l0=3, kept_share=True, budget=b),
    "top_k": lambda b: dp.top_k(LOG, **COLUMNS, **HALF, k=1, budget=b),
    "select": lambda b: dp.select(LOG, **COLUMNS, **HALF, l0=3, budget=b),
    "answers": lambda b: dp.answer_queries([3, 4], **HALF, budget=b),
}


def test_what_the_caller_stated_is_charged():
    budget = Budget(epsilon=1, delta=1e-6)
    dp.count(LOG, **COLUMNS, items=["home"], epsilon=0.5, budget=budget)
    many = ["home", *(f"page {n}" for n in range(99))]
    dp.count(LOG, **COLUMNS, items=many, epsilon=0.5, delta=1e-6, budget=budget)
    epsilon, delta = budget._account().used
    assert (1 - 1e-9 < epsilon <= 1, delta) == (True, Fraction(1e-6))


def test_a_dataset_with_charges_of_both_kinds_takes_no_more(tmp_path):
    path = tmp_path / "ledger"
    views = Ledger.open(path).dataset("views", epsilon=1, delta=1e-6)
    dp.count(LOG, **COLUMNS, **HALF, items=["home"], budget=views)
    assert views._account().used is not None
    book = copy(views._chain.read())
    assert book.account("views").fits(book.account("views").price(dp.Guarantee(1e-9, 0)))
    # A version without pairs would write such a line.
    book.replay([{"number": book.number + 1, "kind": "charged", "dataset": "views", "rho": 1, "delta": 0}])
    assert not book.account("views").fits(book.account("views").price(dp.Guarantee(1e-9, 0)))


@pytest.mark.parametrize("release", HALVES.values(), ids=HALVES)
def test_half_of_an_epsilon_fits_twice(release, tmp_path):
    path = tmp_path / "ledger"
    for budget in (Budget(epsilon=1, delta=1e-6), Ledger.open(path).dataset("views", epsilon=1, delta=1e-6)):
        release(budget)
        used = budget._account().used
        release(budget)
        assert budget.guarantee.dp == (1, 1e-6)
        # A budget that adds up epsilons has none left, and its history has shares of its rho and delta.
        if used is not None:
            assert budget.remaining.rho < 1e-12
            assert sum(row.rho for row in budget.history) == pytest.approx(budget.total.rho, rel=0.03)
            with pytest.raises(BudgetExceeded, match=r"this needs epsilon=0\.(5|49999999)"):
                release(budget)


TOTALS = [(1.0, 1e-6), (0.3, 1e-6), (0.1, 1e-9), (0.7, 3e-7), (3.0, 1e-5), (0.01, 1e-6), (8.0, 1e-12)]
PARTS = {
    "guarantee": lambda epsilon, delta: Guarantee.from_dp(epsilon, delta),
    "pure": lambda epsilon, delta: Guarantee.from_dp(epsilon),
    "range": lambda epsilon, delta: Guarantee.from_bounded_range(epsilon, delta),
    "Gumbel": lambda epsilon, delta: GumbelTopK.from_epsilon(k=1, epsilon=epsilon, delta=delta),
    "Laplace": lambda epsilon, delta: LaplaceThreshold.from_epsilon(epsilon=epsilon, delta=delta, l0=1),
    "Gaussian": lambda epsilon, delta: GaussianThreshold.from_epsilon(epsilon=epsilon, delta=delta, l0=3),
    "geometric": lambda epsilon, delta: TruncatedGeometric(epsilon=epsilon, delta=delta),
    "calibrated": lambda epsilon, delta: CalibratedCounts.from_epsilon(epsilon=epsilon, delta=delta),
    "rho": lambda rho, delta: Guarantee(rho, delta),
    "count of a rho": lambda rho, delta: CalibratedCounts(rho=rho, delta=delta),
    "top of a rho": lambda rho, delta: GumbelTopK.from_rho(k=3, rho=rho, delta=delta),
}


@pytest.mark.parametrize("name", PARTS)
def test_n_parts_of_one_nth_fit(name):
    for number, (total, delta) in enumerate(TOTALS):
        step = 1 if name == "rho" else 7  # of the numbers of parts, each total takes others
        for n in range(2 + number % step, 101, step):
            budget = Budget(**{"rho" if "rho" in name else "epsilon": total}, delta=delta)
            part = PARTS[name](total / n, delta / n)
            for _ in range(n):
                budget.charge(part)
            assert (budget.guarantee.dp or (budget.guarantee.rho, budget.guarantee.delta)) == (total, delta)
            assert budget.spent.rho <= budget.total.rho
            assert budget.spent.delta <= budget.total.delta
            assert not budget.fits(Guarantee.from_dp(total / 2, delta / 2))


def test_decimal_parts_fit_although_their_floats_are_more():
    for tenths in range(2, 101):
        total, delta = tenths / 10, tenths / 10 * 1e-6
        for part, whole in (
            (Guarantee.from_dp(0.1, 1e-7), Budget(epsilon=total, delta=delta)),
            (Guarantee(0.1, 1e-7), Budget(rho=total, delta=delta)),
        ):
            for _ in range(tenths):
                whole.charge(part)


def squared(number):
    return Fraction(number) ** 2


ZIPF = Histogram.from_counts(
    range(9000), [10**6 // n for n in range(1, 9001)], l0=None, linf=1, complete=True, users=10**6
)
VISITS = {
    "user": np.repeat(np.arange(1000), 20),
    "item": (500 ** np.random.default_rng(5).random(20_000)).astype(int),
}


def fullest(rho, delta):
    """Return a Private Count Release whose rho pays for sixteen items, and nearly for no more."""
    epsilon = math.sqrt(rho / 4) * (1 + 2**-50)
    while True:
        mechanism = PrivateCountRelease(rho=rho, delta=delta, epsilon_star=epsilon, relative_error=1e-9)
        if len(mechanism.release(histogram(18), rng=seeded_rng(1))) == 16:
            return mechanism
        epsilon = math.nextafter(epsilon, 0)


def spent_by(mechanism, table, **columns):
    """Return the sum of the prices of all steps of a release that spends nearly all, before it is cut at rho."""
    prices = []
    with pytest.MonkeyPatch.context() as patch:
        for module in (calibrated_counts, confirmed_counts):
            patch.setattr(module, "units_rho", lambda units: prices.append(units) or units_rho(units))
        mechanism.release(table, **columns, rng=seeded_rng(1))
    assert prices[-1] > (1 - 2**-40) * mechanism.rho * UNIT
    return Fraction(prices[-1], UNIT)


def spent_by_steps(mechanism):
    """Return the cost of the steps of a Private Count Release, from its scales: a selection and a count for each."""
    sigmas = mechanism.release(histogram(18), rng=seeded_rng(1)).sigmas.tolist()
    return sum(squared(mechanism.epsilon_star) / 8 + 1 / squared(sigma) / 2 for sigma in sigmas)


TRUE_COSTS = {
    "Gaussian": (made(GaussianThreshold, l0=3), lambda m: 3 / squared(m.sigma) / 2),
    "Gaussian counts": (
        lambda rho, delta: GaussianCounts.from_rho(rho=rho, items=("a", "b")),
        lambda m: 2 / squared(m.sigma) / 2,
    ),
    "Laplace": (made(LaplaceThreshold, l0=3), lambda m: 3 / squared(m.scale) / 2),
    "Gumbel": (made(GumbelTopK, k=10), lambda m: 10 * squared(m.gamma) / 8),
    "geometric": (made(TruncatedGeometric), lambda m: 1 / squared(m.scale) / 2),
    "optimal": (OptimalSelection.from_rho, lambda m: Fraction(m.each[0])),
    "optimal of several": (made(OptimalSelection, l0=3), lambda m: 3 * Fraction(m.each[0])),
    "bound": (lambda rho, delta: ContributionBound.from_rho(rho=rho), lambda m: squared(m.epsilon) / 8),
    "sums": (
        lambda rho, delta: ClippedSums(rho=rho, low=-2, high=7, items=("a",), l0=1),
        lambda m: squared(7) / squared(m.sigma) / 2,
    ),
    "prices": (fullest, spent_by_steps),
    "confirmed": (ConfirmedCounts.from_rho, lambda m: spent_by(m, ZIPF)),
    "calibrated": (CalibratedCounts.from_rho, lambda m: spent_by(m, VISITS, **COLUMNS)),
}


@pytest.mark.parametrize("name", TRUE_COSTS)
def test_the_true_cost_is_below_the_stated_one_by_the_tolerance(name):
    """A budget lets floats exceed its total by one part in 2^52 (`_fits`), so true costs must stay below it."""
    make, cost = TRUE_COSTS[name]
    chance = random.Random(13)
    for rho in (0.1, 1.0, 2.0**-4, 0.3, *(10 ** chance.uniform(-1.7, 1) for _ in range(60))):
        mechanism = make(rho=rho, delta=1e-6)
        assert cost(mechanism) * (2**52 + 1) <= Fraction(mechanism.guarantee.rho) * 2**52


TRUE_EPSILONS = {
    "geometric": (made(TruncatedGeometric, l0=3), lambda m: 3 / Fraction(m.scale)),
    "geometric of one": (made(TruncatedGeometric), lambda m: 1 / Fraction(m.scale)),
    "optimal": (made(OptimalSelection), lambda m: Fraction(m.each[0])),
    "Laplace": (made(LaplaceThreshold, l0=3), lambda m: 3 / Fraction(m.scale)),
    "Gumbel": (made(GumbelTopK, k=10), lambda m: 10 * Fraction(m.gamma)),
}


@pytest.mark.parametrize("name", TRUE_EPSILONS)
def test_the_true_epsilon_is_below_the_stated_one_by_the_tolerance(name):
    make, cost = TRUE_EPSILONS[name]
    chance = random.Random(17)
    for epsilon in (0.1, 1.0, 2.0**-4, 0.3, *(10 ** chance.uniform(-1.5, 1) for _ in range(60))):
        mechanism = make(epsilon=epsilon, delta=1e-6)
        assert cost(mechanism) * (2**52 + 1) <= Fraction(mechanism.guarantee.dp[0]) * 2**52


ROADS = {
    "charge": lambda b, kind, cost, delta: b.charge(
        Guarantee.from_dp(cost, delta) if kind == "epsilon" else Guarantee(cost, delta)
    ),
    "release": lambda b, kind, cost, delta: b.release(made(GumbelTopK, k=1)(**{kind: cost}, delta=delta), histogram()),
    "count": lambda b, kind, cost, delta: dp.count(LOG, **COLUMNS, **{kind: cost}, delta=delta, budget=b),
    "top_k": lambda b, kind, cost, delta: dp.top_k(LOG, **COLUMNS, k=1, **{kind: cost}, delta=delta, budget=b),
    "mechanism": lambda b, kind, cost, delta: dp.count(
        LOG, **COLUMNS, mechanism=made(LaplaceThreshold, l0=2)(**{kind: cost}, delta=delta), budget=b
    ),
    "items": lambda b, kind, cost, delta: dp.count(LOG, **COLUMNS, **{kind: cost}, items=["home"], budget=b),
    "answers": lambda b, kind, cost, delta: dp.answer_queries([3, 4], **{kind: cost}, delta=delta, budget=b),
}


@pytest.mark.parametrize("kind", ["epsilon", "rho"])
@pytest.mark.parametrize("road", ROADS)
def test_n_parts_fit_on_every_road_in_memory_and_in_a_file(road, kind, tmp_path):
    for n, total in ((3, 0.3), (5, 1.0), (7, 0.7), (10, 1.0)):
        ledger = Ledger.open(tmp_path / "ledger").dataset(f"views {n}", **{kind: total}, delta=1e-6)
        for budget in (Budget(**{kind: total}, delta=1e-6), ledger):
            for _ in range(n):
                ROADS[road](budget, kind, total / n, 1e-6 / n)
            shown = Ledger.open(tmp_path / "ledger").dataset(f"views {n}") if budget is ledger else budget
            assert shown.spent.rho <= shown.total.rho
            with pytest.raises(BudgetExceeded):
                ROADS[road](budget, kind, total / n, 1e-6 / n)


def test_small_parts_fit_in_a_file_that_is_read_anew(tmp_path):
    """A rho below 2^-11 is rounded up to units of 2^-64, and its line says by how much."""
    views = Ledger.open(tmp_path / "ledger").dataset("views", rho=0.001, delta=1e-6)
    part = Guarantee(0.001 / 49, 1e-8)
    for _ in range(47):
        views.charge(part)
    refunded = views.release(GumbelTopK.from_rho(k=90, rho=part.rho, delta=1e-8), histogram(), charge="spent")
    assert 0 < refunded.spent.rho < part.rho / 9
    for _ in range(2):
        account = ledger_format.parse((tmp_path / "ledger").read_bytes()).accounts["views"]
        assert account == views._account()
        assert account.fits(account.price(part))
        exact = 47 * Fraction(part.rho) + Fraction(refunded.spent.rho)
        assert 0 <= Fraction(account.spent.fine, 2**128) - exact < Fraction(len(views.history), 2**128)
        views.charge(Guarantee(0.0, 1e-9))
    views.charge(part)
    assert not views.fits(part)


def test_epsilons_add_up_exactly(tmp_path):
    """The exact sums of the pairs exceed the total by less than one part in 2^52, whatever the charges are."""
    chance = random.Random(9)
    for _ in range(100):
        budget = Budget(epsilon=10 ** chance.uniform(-3, 1), delta=10 ** chance.uniform(-12, -3))
        total, sums = budget.guarantee.dp, [Fraction(0), Fraction(0)]
        for _ in range(20):
            pair = [most * chance.choice((0.5, 0.25, 1 / 3, 0.1, chance.random() / 4)) for most in total]
            cost = Guarantee.from_dp(*pair)
            if budget.fits(cost):
                budget.charge(cost)
                sums = [one + Fraction(more) for one, more in zip(sums, pair, strict=True)]
                if budget._account().used is None:
                    break
                assert (*sums,) == budget._account().used
            else:
                left = budget.remaining.dp or (0, 0)
                assert any(more > rest for more, rest in zip(pair, left, strict=True))
        if budget._account().used is not None:
            assert all(one * 2**52 < Fraction(most) * (2**52 + 1) for one, most in zip(sums, total, strict=True))
            assert not budget.fits(Guarantee.from_dp(total[0], 0))
            with pytest.raises(BudgetExceeded, match="This budget adds up epsilons"):
                budget.shortfall(Guarantee(2.0**-64, 0))


def test_the_first_charge_decides_how_a_budget_in_epsilon_adds_up():
    pair = Guarantee.from_dp(0.3, 1e-9)
    for first, other in ((Guarantee(1e-3, 1e-9), pair), (pair, Guarantee(1e-2, 1e-9))):
        budget = Budget(epsilon=1.0, delta=1e-6)
        assert budget.fits(first)
        priced = budget._account().price(other)
        budget.charge(first)
        assert not budget._account().fits(priced)  # it was priced before the first charge
    # After epsilons a rho costs the epsilon that it implies; refunds are for rhos alone.
    budget.charge(Guarantee(1e-3, 1e-9))
    assert budget._account().used > (Fraction(0.3), Fraction(1e-9))
    budget.release(GumbelTopK.from_epsilon(k=1, epsilon=0.1, delta=1e-9), histogram(), charge="spent")
    assert budget._account().used > (Fraction(0.4), Fraction(2e-9))


def test_equal_releases_of_an_epsilon_all_fit():
    for n in (1, 3, 10):
        for l0 in (None, 1, 3):
            budget = Budget(epsilon=1.0, delta=1e-6)
            epsilon, delta = budget.split_epsilon(n)
            for _ in range(n):
                dp.count(LOG, **COLUMNS, epsilon=epsilon, delta=delta, l0=l0, budget=budget)
    assert Budget(rho=1, delta=1e-6).split_epsilon(2) is None
    budget = Budget(epsilon=1.0, delta=1e-6)
    budget.charge(Guarantee.from_dp(0.4, 1e-7))
    shares = budget.split(7)
    for share in shares:
        budget.charge(share)
    assert budget._account().used <= (1, 1)


def test_an_exchange_must_fit_as_a_sum_of_charges():
    budget = Budget(epsilon=1.0, delta=1e-6)
    # The lists are charged one by one, so their guarantees must fit as a sum.
    with pytest.raises(BudgetExceeded):
        budget.pay_what_you_get(outcomes=1, queries=1, epsilon=1.0, delta=1e-6)


def test_a_dataset_in_epsilon_is_opened_again_as_it_was(tmp_path):
    ledger = Ledger.open(tmp_path / "ledger")
    views = ledger.dataset("views", epsilon=1.0, delta=1e-6)
    assert ledger.dataset("views").guarantee == ledger.dataset("views", epsilon=1.0, delta=1e-6).guarantee
    for other in ({"epsilon": 2.0, "delta": 1e-6}, {"rho": views.remaining.rho, "delta": views.remaining.delta}):
        with pytest.raises(ParameterError, match="fixed for good"):
            ledger.dataset("views", **other)
    assert ledger.dataset("views", delta=1e-6).guarantee == views.guarantee
    ledger.dataset("rows", rho=views.remaining.rho, delta=views.remaining.delta)
    with pytest.raises(ParameterError, match="fixed for good"):
        ledger.dataset("rows", epsilon=1.0, delta=1e-6)


def test_a_refusal_prints_digits_that_differ():
    chance = random.Random(5)
    known = (1.0, 0.1, 0.7, 1e-9, 3000.0)
    for more in (*known, *(math.exp(chance.uniform(-3.9, 4.1)) for _ in range(200))):
        less = math.nextafter(more, 0)
        message = str(BudgetExceeded(Guarantee(more, 0), Guarantee(less, 0)))
        cost, left = message.removeprefix("Privacy budget exceeded: this release costs rho=").split("; rho=")
        cost, left = float(cost), float(left.split(" ")[0])
        assert cost > left
        assert more not in known or (cost, left) == (more, less)
    message = str(BudgetExceeded(Guarantee(0.1, 1e-6), Guarantee(0.05, 1e-7)))
    assert "costs rho=0.1 and delta=1e-06; rho=0.05 and delta=1e-07 are left. Nothing was charged." in message
    assert message.endswith("Try rho=0.05 and delta=1e-07.")


def test_the_suggestion_of_budget_exceeded_fits():
    chance = random.Random(11)
    for _ in range(200):
        budget = Budget(rho=chance.choice((0.1, 1.0, chance.random())), delta=1e-6)
        budget.charge(Guarantee(chance.choice((0, 0.01, 0.1)) * budget.remaining.rho, chance.choice((0, 1e-8))))
        cost = Guarantee(budget.remaining.rho * (1 + chance.random()), chance.choice((0.0, 1e-7, 2e-6)))
        with pytest.raises(BudgetExceeded) as caught:
            budget.charge(cost)
        tried = dict(part.split("=") for part in str(caught.value).split("Try ")[1].rstrip(".").split(" and "))
        assert budget.fits(Guarantee(float(tried["rho"]), float(tried.get("delta", cost.delta))))


IN_RHO = {
    "count": lambda budget, rho, delta: dp.count(LOG, **COLUMNS, rho=rho, delta=delta, budget=budget),
    "count l0": lambda budget, rho, delta: dp.count(LOG, **COLUMNS, rho=rho, delta=delta, l0=3, budget=budget),
    "items": lambda budget, rho, _: dp.count(LOG, **COLUMNS, rho=rho, items=["home"], budget=budget),
    "ranks": lambda budget, rho, _: dp.top_k(LOG, **COLUMNS, k=1, rho=rho, items=["home", "help"], budget=budget),
    "top_k": lambda budget, rho, delta: dp.top_k(LOG, **COLUMNS, k=10, rho=rho, delta=delta, budget=budget),
    "select": lambda budget, rho, delta: dp.select(LOG, **COLUMNS, rho=rho, delta=delta, l0=3, budget=budget),
    "sums": lambda budget, rho, _: dp.sum(
        LOG | {"v": [1] * 6000}, **COLUMNS, value="v", bounds=(0, 9), rho=rho, items=["home"], budget=budget
    ),
}


@pytest.mark.parametrize("n", [1, 3, 10])
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.01, 1e-9), (8.0, 1e-5)])
def test_shares_in_rho_fit_after_an_epsilon_whatever_the_releases_are(n, epsilon, delta):
    for releases in (*([release] for release in IN_RHO.values()), [*IN_RHO.values()]):
        budget = Budget(epsilon=epsilon, delta=delta)
        budget.charge(Guarantee.from_dp(epsilon / 2, delta / 2))
        assert budget._account().used is not None
        share, *_ = budget.split(n)
        for number in range(n):
            releases[number % len(releases)](budget, share.rho, share.delta)


def test_nothing_costs_nothing_after_an_epsilon():
    budget = Budget(epsilon=1, delta=1e-6)
    for share in (0.5, 0.5):
        budget.charge(Guarantee.from_dp(share, share * 1e-6))
        left = budget.remaining
        budget.charge(Guarantee(0, 0))
        assert budget.remaining == left


def test_what_is_left_of_an_epsilon_affords_a_mechanism_of_it():
    budget = Budget(epsilon=1, delta=1e-6)
    budget.charge(Guarantee.from_dp(0.5, 5e-7))
    for share, left in ((0.5, 0.25), (1, 0.0)):
        made = budget.afford(GumbelTopK, k=10, share=share)
        assert budget.fits(made)
        budget.charge(made)
        assert (budget.remaining.dp or (0,))[0] == pytest.approx(left, abs=1e-3)
    with pytest.raises(BudgetExceeded, match="for a GumbelTopK"):
        budget.afford(GumbelTopK, k=10)


def test_lists_that_share_a_rho_need_a_budget_that_adds_up_rhos():
    budget = Budget(epsilon=1, delta=1e-6)
    asked = {"outcomes": 10, "queries": 3, "epsilon": 0.01, "delta": 1e-8}
    budget.pay_what_you_get(**asked)
    for share, remedy in ((0.5, "Release each list with top_k and an epsilon"), (0.5, "No epsilon is left")):
        budget.charge(Guarantee.from_dp(share, share * 1e-6))
        with pytest.raises(BudgetExceeded, match=f"needs rho=0.000125 and .*This budget adds up epsilons.*{remedy}"):
            budget.pay_what_you_get(**asked)


def test_charges_are_numbered_without_gaps(tmp_path):
    def spend(budget):
        for _ in range(3):
            dp.count(LOG, **COLUMNS, rho=0.1, delta=1e-8, budget=budget)
        budget.charge(Guarantee(0.1, 0), made_by="another library")
        return [row.number for row in budget.history]

    assert spend(Budget(rho=1, delta=1e-6)) == [1, 2, 3, 4]
    ledger = Ledger.open(tmp_path / "privacy.ledger")
    # Numbers are those of the whole ledger, as `discreet budget history` lists them.
    for name, numbers in (("first", [1, 2, 3, 4]), ("second", [5, 6, 7, 8])):
        assert spend(ledger.dataset(name, rho=1, delta=1e-6)) == numbers
    assert [row.number for row in ledger.history] == [*range(1, 9)]
