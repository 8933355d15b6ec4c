"""`answer_queries`: the guarantee, the error and the refusals of every method."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import discreet as dp
from discreet.errors import ParameterError
from discreet.queries import bounded
from discreet.queries.bounded import BoundedAnswers, _least_reach
from discreet.queries.choose import ANSWER_METHODS, COMPARED
from discreet.queries.expected import Survivors, gaussian_survival
from discreet.queries.noisy import GaussianAnswers, LaplaceAnswers
from discreet.testing import seeded_rng

K = 200


@pytest.mark.parametrize("method", ANSWER_METHODS)
@pytest.mark.parametrize("promise", [{"epsilon": 1.0}, {"rho": 0.1}])
def test_answers_keep_their_guarantee_and_error_bound(method, promise):
    values = np.arange(K) * 1000
    answers = dp.answer_queries(values, **promise, delta=1e-6, method=method)
    # The bound of some methods is exceeded with a chance of 1e-6, so the draws are seeded.
    seeded = dp.answer_queries(values, **promise, delta=1e-6, method=method, rng=seeded_rng(3))
    assert answers.values.dtype == np.int64
    assert len(answers) == len(answers.values) == K
    assert np.abs(seeded.values - values).max() <= seeded.error_bound == answers.error_bound
    assert 0 < answers.expected_error < answers.error_bound
    assert not answers.seeded
    assert "no privacy" in repr(seeded)
    if "rho" in promise:
        assert answers.guarantee.rho <= 0.1
        assert answers.guarantee.delta <= 1e-6
    else:
        assert answers.guarantee.epsilon(1e-6) <= 1.0


@pytest.mark.parametrize("method", ANSWER_METHODS)
def test_expected_errors_match_the_mean_of_many_releases(method):
    mechanism = ANSWER_METHODS[method].from_epsilon(k=K, epsilon=1.0, delta=1e-6)
    values, rng = np.zeros(K, np.int64), seeded_rng(4)
    errors = [np.abs(mechanism.release(values, rng=rng).values).max() for _ in range(300)]
    assert np.mean(errors) == pytest.approx(mechanism.expected_error, rel=0.06)
    assert max(errors) <= mechanism.error_bound


@pytest.mark.parametrize(("k", "best"), [(1, "laplace"), (12, "gaussian"), (100, "bounded"), (1000, "bounded")])
def test_auto_names_the_method_of_smallest_expected_error(k, best):
    answers = dp.answer_queries([7] * k, epsilon=1.0, delta=1e-6)
    plan = dp.plan("answer_queries", k=k, epsilon=1.0, delta=1e-6)
    assert plan.methods[0][0] == best
    assert plan.methods[0][1] == answers.expected_error == min(expected for _, expected, _, _ in plan.methods)
    assert best in answers.notes[0]
    assert best in str(plan)
    assert {name for name, *_ in plan.methods} == set(COMPARED)


def test_the_chosen_method_does_not_depend_on_values():
    makers = {dp.answer_queries(values, rho=0.1, delta=1e-6).made_by for values in ([0] * 50, [10**9] * 50)}
    assert len(makers) == 1


@pytest.mark.parametrize(
    ("power", "reach", "k", "error"), [(8, 189, 100, 111.158), (5, 276, 300, 205.928), (4, 471, 1000, 394.739)]
)
def test_bounded_noise_has_the_known_reach_and_power(power, reach, k, error):
    mechanism = BoundedAnswers.from_epsilon(k=k, epsilon=1.0, delta=1e-6)
    assert (mechanism.power, mechanism.reach) == (power, reach)
    assert mechanism.expected_error == pytest.approx(error, abs=2e-3)
    assert (mechanism.error_bound, mechanism.bound_chance) == (reach - 1, 0.0)


@pytest.mark.parametrize(("k", "error"), [(10, 25.126), (100, 116.050), (1000, 458.957), (10_000, 1697.812)])
def test_gaussian_noise_is_calibrated_by_its_exact_divergence(k, error):
    assert GaussianAnswers.from_epsilon(k=k, epsilon=1.0, delta=1e-6).expected_error == pytest.approx(error, rel=2e-5)


def test_laplace_noise_gains_from_composition():
    one = LaplaceAnswers.from_epsilon(k=1, epsilon=1.0, delta=1e-6)
    many = LaplaceAnswers.from_epsilon(k=1000, epsilon=1.0, delta=1e-6)
    assert one.scale == pytest.approx(1.0, rel=1e-5)
    assert 130 < many.scale < 135


@pytest.mark.parametrize(
    "mechanism",
    [
        GaussianAnswers.from_epsilon(k=50, epsilon=1.0, delta=1e-6),
        LaplaceAnswers.from_epsilon(k=50, epsilon=1.0, delta=1e-6),
    ],
)
def test_noise_too_small_for_its_guarantee_is_refused(mechanism):
    name = "sigma" if hasattr(mechanism, "sigma") else "scale"
    with pytest.raises(dp.errors.ParameterError, match="from_epsilon"):
        dataclasses.replace(mechanism, **{name: getattr(mechanism, name) * 0.999})
    with pytest.raises(dp.errors.ParameterError, match="from_epsilon"):
        BoundedAnswers(k=100, reach=187, power=8, delta=1e-6, epsilon=1.0)


@pytest.mark.parametrize(
    "values",
    [
        *([], [1.5], [1.0, 2.0], ["a"], [[1, 2]], [True], None, [None], 5, np.array([1 + 0j])),
        *(np.ma.array([1000, 2000], mask=[0, 1]), [1000, np.ma.masked], [np.ma.array(1000, mask=True)]),
    ],
)
def test_values_of_another_type_are_refused(values):
    with pytest.raises(dp.errors.ParameterError, match="whole numbers"):
        dp.answer_queries(values, rho=1, delta=1e-6)


@settings(max_examples=200, deadline=None)
@given(value=st.integers(-(2**40), 2**40), change=st.integers(-90, 90), step=st.integers(1, 90))
def test_a_sensitivity_makes_steps_that_one_user_moves_by_one(value, change, step):
    change = max(-step, min(step, change))
    given = {"epsilon": 10, "delta": 0, "method": "laplace", "sensitivity": step}
    first, second = (dp.answer_queries([n], **given, rng=seeded_rng(1)).values[0] for n in (value, value + change))
    if abs(value + change) <= 2**40:
        assert abs(first - second) in (0, step)


@pytest.mark.parametrize("method", ["gaussian", "bounded", "auto"])
def test_answers_of_a_sensitivity_keep_their_error_bound(method):
    values = np.arange(-500, 500) * 37
    answers = dp.answer_queries(values, rho=0.5, delta=1e-6, method=method, sensitivity=25, rng=seeded_rng(4))
    single = dp.answer_queries(values, rho=0.5, delta=1e-6, method=method, rng=seeded_rng(4))
    assert answers.guarantee == single.guarantee
    assert np.abs(answers.values - values).max() <= answers.error_bound == 25 * single.error_bound + 12
    assert any("at most 25" in note for note in answers.notes)
    assert 0.8 * answers.expected_error < 25 * single.expected_error < answers.expected_error < answers.error_bound
    for wrong in (0, 2**20 + 1):
        with pytest.raises(ParameterError):
            dp.answer_queries(values, rho=0.5, delta=1e-6, sensitivity=wrong)


def test_the_widest_noise_in_the_widest_steps_does_not_overflow():
    # With steps of 2^30 the sum left 63 bits, and its sign was wrong.
    given = {"epsilon": 6e-8, "delta": 0, "method": "laplace", "rng": seeded_rng(2)}
    answers = dp.answer_queries([0] * 50, **given, sensitivity=2**20)
    assert np.abs(answers.values.astype(float)).max() <= answers.error_bound < 2**60


def test_large_values_are_clipped():
    answers = dp.answer_queries(np.array([2**62, -(2**62)]), rho=1, delta=1e-6, method="gaussian")
    assert "values are clipped to ±2^40; largest error of the noise: " in repr(answers)
    assert np.abs(np.abs(answers.values) - 2**40).max() < 100
    unsigned = dp.answer_queries(np.array([2**63], np.uint64), rho=1, delta=1e-6, method="gaussian")
    assert abs(int(unsigned.values[0]) - 2**40) < 100
    assert dp.answer_queries(np.array([-5], np.int8), rho=1, delta=1e-6, method="gaussian").values[0] < 50


@pytest.mark.parametrize("method", ["auto", *ANSWER_METHODS])
@pytest.mark.parametrize("rho", [5e-324, 1e-30])
def test_a_rho_below_the_smallest_is_refused(method, rho):
    with pytest.raises(dp.errors.ParameterError):
        dp.answer_queries([1, 2], rho=rho, delta=1e-6, method=method)


@pytest.mark.parametrize("method", sorted({"auto", *ANSWER_METHODS} - {"bounded"}))
@pytest.mark.parametrize("delta", [1e-6, 1e-300, 1e-320])
def test_a_tiny_epsilon_is_kept_or_refused(method, delta):
    try:
        answers = dp.answer_queries([1, 2], epsilon=5e-324, delta=delta, method=method)
    except dp.errors.ParameterError:
        return
    assert answers.guarantee.dp == (5e-324, delta)
    assert np.isfinite(answers.error_bound)


def test_a_wrong_number_of_values_is_refused():
    mechanism = GaussianAnswers.from_rho(k=3, rho=1)
    with pytest.raises(dp.errors.ParameterError, match="k=3"):
        mechanism.release([1, 2])


def test_a_budget_is_charged_for_answers_and_unions():
    budget = dp.Budget(rho=1.0, delta=1e-5)
    mechanism = budget.afford(dp.queries.GumbelCorrection, share=0.25, k=30)
    answers = budget.release(mechanism, [1] * 30)
    assert len(answers) == 30
    assert 0.74 < budget.remaining.rho <= 0.751
    answers = dp.answer_queries([1] * 30, rho=0.05, delta=1e-6, budget=budget)
    assert len(answers) == 30
    assert "was chosen" in answers.notes[0]
    assert 0.69 < budget.remaining.rho <= 0.701
    with pytest.raises(dp.errors.ParameterError, match="no seeded randomness"):
        dp.answer_queries([1] * 30, rho=0.05, delta=1e-6, budget=budget, rng=seeded_rng(1))
    with pytest.raises(dp.BudgetExceeded):
        dp.answer_queries([1] * 30, rho=0.8, delta=1e-6, budget=budget)
    assert 0.69 < budget.remaining.rho <= 0.701
    log = {"user": np.repeat(np.arange(500), 8), "item": np.tile(np.arange(8), 500)}
    named = dp.select(log, user="user", item="item", rho=0.45, delta=1e-6, l0=8, budget=budget)
    assert set(named.items) <= set(range(8))
    assert 0.24 < budget.remaining.rho <= 0.251


@pytest.mark.statistical
@pytest.mark.parametrize(("k", "gain"), [(100, 0.042), (1000, 0.140), (10_000, 0.225)])
def test_bounded_noise_beats_gaussian_noise_as_forecast(k, gain):
    values, rng = np.zeros(k, np.int64), seeded_rng(6)
    means = []
    for kind in (GaussianAnswers, BoundedAnswers):
        mechanism = kind.from_epsilon(k=k, epsilon=1.0, delta=1e-6)
        means.append(np.mean([np.abs(mechanism.release(values, rng=rng).values).max() for _ in range(1000)]))
    assert 1 - means[1] / means[0] == pytest.approx(gain, abs=0.02)


@pytest.mark.parametrize("k", [1, 7, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 1 / 3, 50])
def test_laplace_answers_need_no_delta(k, epsilon):
    made = dp.queries.LaplaceAnswers.from_epsilon(k=k, epsilon=epsilon, delta=0)
    assert made.guarantee.dp == (epsilon, 0.0)
    assert made.guarantee.delta == 0
    assert k / epsilon <= made.scale <= k / epsilon * (1 + 1e-12)
    answers = dp.answer_queries([50] * k, epsilon=epsilon, delta=0, method="laplace")
    assert answers.guarantee == made.guarantee
    assert len(dp.answer_queries([50] * k, epsilon=epsilon, delta=0)) == k
    with pytest.raises(dp.errors.ParameterError, match="noise is too small"):
        dataclasses.replace(made, scale=made.scale * (1 - 1e-9))
    budget = dp.Budget(epsilon=epsilon, delta=1e-6)
    assert budget.fits(made)


def test_methods_that_need_delta_refuse_a_delta_of_zero():
    for method in ("gaussian", "bounded", "gumbel_correction"):
        with pytest.raises(dp.errors.ParameterError, match="delta"):
            dp.answer_queries([1, 2], epsilon=1.0, delta=0, method=method)
    assert "laplace was chosen" in dp.answer_queries([1, 2], epsilon=1.0, delta=0).notes[0]
    assert dp.answer_queries([1, 2], rho=1.0, delta=0, method="gaussian").guarantee.delta == 0
    for wrong in ({"rho": 1.0, "epsilon": 1.0}, {}, {"epsilon": 0}, {"rho": -1}):
        with pytest.raises(dp.errors.ParameterError):
            dp.answer_queries([1, 2], delta=0, method="laplace", **wrong)


def test_an_epsilon_whose_exponential_is_no_float_is_answered():
    assert dp.answer_queries([1, 2], epsilon=710, delta=1e-6).values.tolist() == [1, 2]


@pytest.mark.parametrize(("k", "epsilon"), [(3, 1.0), (120, 2.0), (1000, 1.0)])
def test_bounded_noise_has_the_least_reach_for_its_power(k, epsilon):
    made = BoundedAnswers.from_epsilon(k=k, epsilon=epsilon, delta=1e-6)
    with pytest.raises(dp.errors.ParameterError, match="too small"):
        dataclasses.replace(made, reach=made.reach - 1)


@pytest.mark.parametrize("rate", [1.0, 4.0, 30.0, 300.0])
@pytest.mark.parametrize("start", [4, 60, 99, 100, 101, 700, 5000])
def test_the_least_reach_is_found_from_any_start(start, rate):
    def cost(reach):
        return math.exp(min(rate * math.log(99.5 / reach), 700))

    assert _least_reach(start, 10_000, cost) == 100
    assert _least_reach(start, 99, cost) is None
    near = _least_reach(start, 10_000, cost, near=5)
    assert 95 <= near <= 105


def test_survival_of_gaussian_noise_is_accurate():
    t = np.linspace(1, 700, 5000)
    exact = np.array([math.erfc((x - 0.5) / (20 * math.sqrt(2))) for x in t])
    found = gaussian_survival(20.0)(t)
    seen = exact > 1e-30
    assert np.allclose(found[seen], exact[seen], rtol=1e-11)
    assert np.all(found[~seen] < 1e-29)


@pytest.mark.parametrize("share", [1e-6, 0.01, 0.5, 0.9])
@pytest.mark.parametrize("rate", [0.01, 1.0, 900.0])
def test_the_corrected_errors_sum_to_their_share(share, rate):
    errors = Survivors.gaussian(50.0, np.linspace(0, 450, 1500))
    left = errors.without(share, rate * errors.magnitudes)
    assert errors.mass.sum() - left.mass.sum() == pytest.approx(share, rel=1e-6)


def test_a_search_for_bounded_noise_gives_up_early(monkeypatch):
    tried, search = [], bounded._least_reach
    monkeypatch.setattr(bounded, "_least_reach", lambda *given: tried.append(given) or search(*given))
    with pytest.raises(ParameterError, match="no bounded noise"):
        BoundedAnswers.from_epsilon(k=17, epsilon=0.1684, delta=3.6e-14)
    assert len(tried) <= 6
    found = BoundedAnswers.from_epsilon(k=2, epsilon=1.0068130425387452, delta=1.6980542666242898e-16)
    assert (found.reach, found.power) == (370, 128)


def test_a_tiny_epsilon_computes_no_law_of_millions_of_values(monkeypatch):
    values, delta = [], bounded._bounded_delta

    def counting(reach, *law):
        values.append(reach)
        assert sum(values) < 100_000
        return delta(reach, *law)

    monkeypatch.setattr(bounded, "_bounded_delta", counting)
    dp.answer_queries([1, 2], epsilon=1e-2, delta=1e-6)
    assert values
    dp.answer_queries([1, 2], epsilon=1e-5, delta=1e-6)
