"""Mutants: mechanisms with one error each, in the guarantee or in a value from which the releases are computed."""

import dataclasses
import math

import numpy as np

from discreet import (
    GaussianThreshold,
    GaussianTopK,
    Guarantee,
    GumbelTopK,
    LaplaceThreshold,
    LaplaceTopK,
    OptimalSelection,
    PrivateCountRelease,
    TruncatedGeometric,
    _core,
)
from discreet.mechanisms import (
    CorrelatedCounts,
    ExponentialMechanism,
    GaussianCounts,
    KeptPairs,
    LaplaceCounts,
)
from discreet.privacy import Sensitivity
from discreet.theorems import rogers2023


def claiming(mechanism, **guarantee):
    """Return the mechanism with another guarantee."""
    given = {"rho": mechanism.guarantee.rho, "delta": mechanism.guarantee.delta, "dp": mechanism.guarantee.dp}
    lie = Guarantee(**{**given, **guarantee})
    return type(type(mechanism).__name__, (type(mechanism),), {"guarantee": property(lambda _: lie)})(
        **{field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)}
    )


def with_property(mechanism, **properties):
    """Return the mechanism with other properties and an unchanged guarantee."""
    kept = mechanism.guarantee
    changed = {name: property(lambda _, value=value: value) for name, value in properties.items()}
    changed["guarantee"] = property(lambda _: kept)
    return type(type(mechanism).__name__, (type(mechanism),), changed)(
        **{field.name: getattr(mechanism, field.name) for field in dataclasses.fields(mechanism)}
    )


def lowered(mechanism, by=1):
    return with_property(mechanism, threshold=_core.Threshold(mechanism.noise, mechanism.threshold.value - by))


def margin(mechanism, value):
    return with_property(mechanism, margin=value)


def with_levels(**changes):
    """Return Private Count Release with another price list."""
    levels = [level._replace(**{name: change(level) for name, change in changes.items()}) for level in PRICED.levels]
    return with_property(PRICED, levels=levels)


LAPLACE = LaplaceThreshold(scale=1.0, delta=1e-3, l0=1)


LAPLACE3 = LaplaceThreshold(scale=1.0, delta=1e-3, l0=3)


WIDE = LaplaceThreshold(scale=2.0, delta=1e-3, l0=1, linf=3)


GAUSS = GaussianThreshold(sigma=1.0, delta=1e-3, l0=1)


GAUSS3 = GaussianThreshold(sigma=1.5, delta=1e-3, l0=3)


EXACT = GaussianThreshold.from_epsilon(epsilon=1.0, delta=1e-2, l0=2)


BOUNDED = TruncatedGeometric(epsilon=1.0, delta=1e-3)


OPTIMAL = OptimalSelection(epsilon=1.0, delta=1e-3)


LTOP = LaplaceTopK(scale=1.0, delta=1e-2, l0=1, k_bar=1)


GTOP = GaussianTopK(sigma=0.8, delta=1e-2, l0=1, k_bar=1)


GUMBEL = GumbelTopK(k=2, scale=1.0, delta=0.1, k_bar=3)


PRICED = PrivateCountRelease(rho=0.7, delta=0.1, epsilon_star=1.0, delta_star=0.05, k_bar=2)


DRAWN = ExponentialMechanism(items=("0", "1", "2"), scale=1.0, k=2)


LISTED = LaplaceCounts(items=("0", "1", "2"), scale=1.0, l0=2)


SHARED = CorrelatedCounts(items=("0", "1"), rho=1.0)


KEPT = KeptPairs(l0=3, most=8, rho=0.5)


KEPT_BY_LAPLACE = KeptPairs(l0=2, most=5, epsilon=1.0)


MUTANTS = {
    "the Laplace threshold is passed by equal counts too": lambda: lowered(LAPLACE),
    "the Laplace threshold is two too low": lambda: lowered(LAPLACE, 2),
    "the Laplace threshold lost its 1/epsilon": lambda: with_property(
        LaplaceThreshold(scale=3.0, delta=1e-3, l0=1),
        threshold=_core.Threshold(_core.Noise.discrete_laplace(3.0), round(1 + math.log(1 / (2e-3)))),
    ),
    "the Laplace threshold ignores linf": lambda: with_property(
        WIDE, threshold=_core.Threshold(WIDE.noise, WIDE.threshold.value - 2)
    ),
    "continuous noise's smaller rho is charged for discrete noise": lambda: claiming(
        LAPLACE, rho=math.exp(-1.0), dp=None
    ),
    "rho is four fifths of what it costs": lambda: claiming(GAUSS, rho=0.8 * GAUSS.guarantee.rho),
    "a threshold is made for three of fifty items": lambda: with_property(
        LaplaceThreshold(scale=1.0, delta=1e-3, l0=50),
        threshold=_core.Threshold.for_chance(LAPLACE.noise, 1, rogers2023.novel_chance(1e-3, 3)),
    ),
    "a tiny delta is twenty times too small": lambda: with_property(
        LaplaceThreshold(scale=1.0, delta=1e-14, l0=1),
        threshold=_core.Threshold.for_chance(LAPLACE.noise, 1, 2e-13),
    ),
    "delta is spent per item, not per query": lambda: with_property(
        LAPLACE3, threshold=_core.Threshold.for_chance(LAPLACE3.noise, 1, 1e-3)
    ),
    "epsilon is charged once for l0 items": lambda: claiming(LAPLACE3, dp=(1.0, 1e-3)),
    "rho is charged once for l0 items": lambda: claiming(LAPLACE3, rho=0.5, dp=None),
    "rho ignores linf": lambda: claiming(WIDE, rho=(1 / 2.0) ** 2 / 2, dp=None),
    "epsilon ignores linf": lambda: claiming(WIDE, dp=(1 / 2.0, 1e-3)),
    "the Laplace noise is smaller than charged": lambda: with_property(
        LAPLACE,
        noise=_core.Noise.discrete_laplace(0.8),
        threshold=_core.Threshold(_core.Noise.discrete_laplace(0.8), LAPLACE.threshold.value),
    ),
    "pure noise is charged as a bounded range": lambda: claiming(LAPLACE, rho=1.0 / 8, dp=None),
    "the Laplace delta is squared": lambda: claiming(LAPLACE, delta=1e-6, dp=(1.0, 1e-6)),
    "the tail of half the noise sets the threshold": lambda: with_property(
        LAPLACE,
        threshold=_core.Threshold(
            LAPLACE.noise, _core.Threshold.for_chance(_core.Noise.discrete_laplace(0.5), 1, 1e-3).value
        ),
    ),
    "the Gaussian threshold is passed by equal counts too": lambda: lowered(GAUSS),
    "a continuous threshold is rounded down for integer noise": lambda: with_property(
        LaplaceThreshold(scale=1.0, delta=6e-4, l0=1),
        threshold=_core.Threshold(LAPLACE.noise, math.floor(rogers2023.laplace_threshold(1.0, 6e-4))),
    ),
    "sigma grows with l0, and sqrt(l0) is charged twice": lambda: claiming(GAUSS3, rho=GAUSS3.guarantee.rho / 3),
    "rho lost the square of linf": lambda: claiming(
        GaussianThreshold(sigma=3.0, delta=1e-3, l0=1, linf=3), rho=3 / (2 * 9.0)
    ),
    "rho is divided by sigma^2 instead of sigma": lambda: claiming(
        GaussianThreshold(sigma=3.0, delta=1e-3, l0=3), rho=3 / (2 * 9.0) / 3
    ),
    "the Gaussian noise is smaller than charged": lambda: with_property(
        GAUSS,
        noise=_core.Noise.discrete_gaussian(0.75),
        threshold=_core.Threshold(_core.Noise.discrete_gaussian(0.75), GAUSS.threshold.value),
    ),
    "the exact delta ignores novel items": lambda: claiming(EXACT, rho=9.0, dp=(1.0, 1e-4)),
    "the exact delta is half of it": lambda: claiming(EXACT, rho=9.0, dp=(1.0, EXACT.guarantee.dp[1] / 2)),
    "the exact delta holds at a smaller epsilon": lambda: claiming(EXACT, rho=9.0, dp=(0.8, EXACT.guarantee.dp[1])),
    "delta is charged for no items": lambda: claiming(GAUSS3, delta=0.0),
    "bounded noise passes at its bound": lambda: lowered(BOUNDED),
    "bounded noise without counts passes at its bound": lambda: lowered(
        TruncatedGeometric(epsilon=1.0, delta=1e-3, with_counts=False)
    ),
    "bounded noise without counts is charged for one of two items": lambda: claiming(
        TruncatedGeometric(epsilon=2.0, delta=2e-3, l0=2, with_counts=False), dp=(1.0, 1e-3), rho=9.0
    ),
    "bounded noise has a bound one too small": lambda: with_property(
        BOUNDED,
        noise=_core.Noise.truncated_geometric(1.0, BOUNDED.bound - 1),
        threshold=_core.Threshold(_core.Noise.truncated_geometric(1.0, BOUNDED.bound - 1), BOUNDED.bound - 1),
    ),
    "bounded noise is charged for one of two items": lambda: claiming(
        TruncatedGeometric(epsilon=2.0, delta=2e-3, l0=2), dp=(1.0, 1e-3), rho=9.0
    ),
    "bounded noise of twice the rate": lambda: with_property(
        BOUNDED,
        noise=_core.Noise.truncated_geometric(0.5, BOUNDED.bound),
        threshold=_core.Threshold(_core.Noise.truncated_geometric(0.5, BOUNDED.bound), BOUNDED.bound),
    ),
    "the optimal chances are for one user more": lambda: with_property(
        OPTIMAL, chances=np.concatenate([[0], OPTIMAL.chances[2:]]).astype(np.uint64)
    ),
    "the optimal chances are for a larger delta": lambda: with_property(
        OPTIMAL, chances=OptimalSelection(epsilon=1.0, delta=2e-3).chances
    ),
    "the optimal chances are for a larger epsilon": lambda: with_property(
        OPTIMAL, chances=OptimalSelection(epsilon=1.2, delta=1e-3).chances
    ),
    "the optimal probabilities jump to one at the first crossover": lambda: with_property(
        OPTIMAL, chances=OPTIMAL.chances[: OPTIMAL.crossovers[0]]
    ),
    "epsilon is not split over the items": lambda: with_property(
        OptimalSelection(epsilon=1.0, delta=1e-3, l0=2), chances=OPTIMAL.chances
    ),
    "the Laplace margin ignores the noise of the next count": lambda: margin(
        LTOP, _core.Threshold.for_chance(LTOP.noise, 1, 1e-2).value
    ),
    "the Laplace margin is one too small": lambda: margin(LTOP, LTOP.margin - 1),
    "the Laplace margin is the printed one, without 1/epsilon": lambda: margin(
        LaplaceTopK(scale=3.0, delta=1e-2, l0=1, k_bar=1), round(1 + math.log(1 / 1e-2))
    ),
    "top-k charges epsilon for one item of two": lambda: claiming(
        LaplaceTopK(scale=1.0, delta=1e-2, l0=2, k_bar=2), dp=(1.0, 1e-2), rho=9.0
    ),
    "the Gaussian margin ignores the noise of the next count": lambda: margin(
        GTOP, _core.Threshold.for_chance(GTOP.noise, 1, 1e-2).value
    ),
    "the Gaussian margin is one too small": lambda: margin(GTOP, GTOP.margin - 1),
    "the Gaussian margin ignores linf": lambda: margin(
        GaussianTopK(sigma=4.0, delta=1e-2, l0=1, linf=3, k_bar=1),
        GaussianTopK(sigma=4.0, delta=1e-2, l0=1, k_bar=1).margin,
    ),
    "the Gumbel stop element lost its 1/epsilon": lambda: with_property(
        GumbelTopK(k=1, scale=3.0, delta=0.01, k_bar=2), offset=(1 + math.log(2 / 0.01)) / 3
    ),
    "the Gumbel stop element ignores the change of the count": lambda: with_property(
        GUMBEL, offset=GUMBEL.offset - GUMBEL.epsilon
    ),
    "the Gumbel stop element covers one item of k_bar": lambda: with_property(
        GUMBEL, offset=rogers2023.gumbel_offset(1.0, 0.1, 1)
    ),
    "the stop element is calibrated for k instead of k_bar": lambda: with_property(
        GumbelTopK(k=1, scale=1.0, delta=0.05, k_bar=3), offset=rogers2023.gumbel_offset(1.0, 0.05, 1)
    ),
    "k selections are charged as one": lambda: claiming(
        GumbelTopK(k=3, scale=1.0, delta=1e-3, k_bar=3), rho=1 / 8, dp=(1.0, 1e-3)
    ),
    "the Gumbel scale is half of the charged one": lambda: with_property(
        GUMBEL, gamma=2.0, offset=rogers2023.gumbel_offset(2.0, 0.1, 3)
    ),
    "the range ignores linf": lambda: claiming(
        GumbelTopK(k=1, scale=1.0, delta=0.01, k_bar=2, linf=3), rho=1 / 8, dp=(1.0, 0.01)
    ),
    "k draws of the exponential mechanism are charged as one": lambda: claiming(DRAWN, rho=1 / 8, dp=(1.0, 0.0)),
    "the exponential mechanism has half of the charged scale": lambda: with_property(DRAWN, gamma=2.0),
    "the exponential mechanism's range ignores linf": lambda: claiming(
        ExponentialMechanism(items=("0", "1", "2"), scale=1.0, linf=3), rho=1 / 8, dp=(1.0, 0.0)
    ),
    "candidates without users are left out": lambda: with_property(DRAWN, raised=0),
    "the exponential mechanism's rho is two thirds of what it costs": lambda: claiming(
        ExponentialMechanism(items=("0", "1"), scale=5.0), rho=0.04 / 12, dp=None
    ),
    "counts of given items are charged for one of two items": lambda: claiming(LISTED, rho=0.5, dp=(1.0, 0.0)),
    "counts of given items are charged as a bounded range": lambda: claiming(LISTED, rho=1 / 4, dp=None),
    "counts of given items have three quarters of the charged noise": lambda: with_property(
        LISTED, noise=_core.Noise.discrete_laplace(0.75)
    ),
    "counts of given items have no pure epsilon, because their noise is Gaussian": lambda: with_property(
        LISTED, noise=_core.Noise.discrete_gaussian(1.5)
    ),
    "Gaussian counts are charged for one of two items": lambda: claiming(
        GaussianCounts(items=("0", "1", "2"), sigma=2.0, l0=2), rho=1 / 8
    ),
    "Gaussian counts ignore linf": lambda: claiming(GaussianCounts(items=("0",), sigma=3.0, linf=3), rho=1 / 18),
    "correlated counts have half of the charged noise": lambda: with_property(
        SHARED, noise=_core.Noise.discrete_gaussian(SHARED.sigmas[0] / 2)
    ),
    "the number of users of correlated counts has half of the charged noise": lambda: with_property(
        SHARED, users_noise=_core.Noise.discrete_gaussian(SHARED.sigmas[1] / 2)
    ),
    "correlated counts are twice the counts, without the number of users": lambda: with_property(
        SHARED, _measured=lambda counts, users: np.append(2 * counts, users)
    ),
    "correlated counts miss users: their number is the largest count": lambda: with_property(
        SHARED, _measured=lambda counts, _: np.append(2 * counts - counts.max(), counts.max())
    ),
    "correlated counts are charged for the counts, not for the number of users": lambda: claiming(
        SHARED, rho=2 / (2 * SHARED.sigmas[0] ** 2)
    ),
    "correlated counts have noise for one of two items": lambda: with_property(
        SHARED, noise=CorrelatedCounts(items=("0",), rho=1.0).noise
    ),
    "the stop element of a call is one too low": lambda: with_levels(offset=lambda level: level.offset - level.gamma),
    "the stop element of a call is calibrated for half of k_bar": lambda: with_levels(
        offset=lambda level: level.offset - math.log(2)
    ),
    "a call that selects nothing costs no delta": lambda: claiming(PRICED, delta=0.05),
    "a count's noise is a quarter of the charged one": lambda: with_levels(sigma=lambda level: level.sigma / 4),
    "counts are not paid for": lambda: claiming(
        PrivateCountRelease(rho=8.0, delta=0.02, epsilon_star=1.5, delta_star=0.01, k_bar=2, meet_relative_error=True),
        rho=1.5**2 / 4,
    ),
    "kept pairs have noise for one pair of a user": lambda: with_property(KEPT, scale=1.0),
    "kept pairs have noise for l0 pairs, and dropped ones none of their own": lambda: with_property(
        KEPT, scale=math.sqrt(KEPT.l0**2 / (2 * KEPT.rho))
    ),
    "dropped pairs have no bound": lambda: with_property(
        KEPT,
        _sums=lambda numbers: (int(np.minimum(numbers, 3).sum()), int(np.maximum(numbers - 3, 0).sum())),
        protects=Sensitivity(l0=1, linf=20),
    ),
    "kept pairs have no bound": lambda: with_property(
        KEPT, _sums=lambda numbers: (int(numbers.sum()), 0), protects=Sensitivity(l0=1, linf=20)
    ),
    "each sum of pairs has all of rho": lambda: with_property(KEPT, scale=5 / math.sqrt(2 * KEPT.rho)),
    "Laplace noise of pairs is made for l0": lambda: with_property(KEPT_BY_LAPLACE, scale=2.0),
    "epsilon is charged for one of two sums of pairs": lambda: claiming(KEPT_BY_LAPLACE, dp=(3 / 5, 0.0), rho=9.0),
}
