"""Parameters of mechanisms, streams and queries that are out of range are refused when the mechanism is made."""

import math

import numpy as np
import pytest

from discreet import (
    BinaryMechanism,
    CalibratedCounts,
    ConfirmedCounts,
    GaussianThreshold,
    GaussianTopK,
    GumbelTopK,
    LaplaceThreshold,
    LaplaceTopK,
    OptimalSelection,
    Plume,
    PrivateCountRelease,
    TruncatedGeometric,
)
from discreet.errors import ParameterError, SchemaError
from discreet.mechanisms import (
    ClippedSums,
    ContributionBound,
    CorrelatedCounts,
    DiscoverAndPeel,
    DiscoverAndSum,
    ExponentialMechanism,
    GaussianCounts,
    LaplaceCounts,
    SetUnion,
)
from discreet.queries import IterativeSparseVector, Stage

NOT_RHO = [0, -1, math.nan, math.inf, 1e308, True, "1", 10**400, np.array([1.0]), None]
MIXED = ("a", 1)
LISTS = [(), ("a", "a"), MIXED]
TINY = [5e-324, 1e-320]
# A class or maker, parameters that suffice, and for each name the values that are refused beside the other parameters.
WRONG = [
    *(
        (kind, {"rho": 1, "delta": 1e-6}, {"rho": [0, 1e-18], "delta": [0, 1], "relative_error": [0, 1], "k_bar": [0]})
        for kind in (CalibratedCounts, ConfirmedCounts)
    ),
    (
        PrivateCountRelease,
        {"rho": 1, "delta": 1e-6},
        {
            "rho": NOT_RHO,
            "delta": [0, 1, -1, math.nan, 2, True, None, *TINY],
            "epsilon_star": [0, -1, math.nan, math.inf, 1e9, None, 5e-324, 1e-308],
            "delta_star": [0, 1e-3, -1, math.nan],
            "k_bar": [0, -1, 1.5, None, True, 10**400],
            "relative_error": [0, -1, 1, 5, math.nan, math.inf, None],
            "meet_relative_error": [1, None, "yes"],
        },
    ),
    (
        Plume,
        {"rho": 1, "delta": 1e-6, "m": 2, "m_prime": 3},
        {"share": [0, 1.0], "m": [0], "m_prime": [1.5], "relative_error": [0], "delta": [1], "selection": ["auto"]},
    ),
    (Plume, {"rho": 1, "delta": 1e-6, "m": 5000, "m_prime": 3}, {"selection": ["dp_sips"]}),
    (
        DiscoverAndPeel,
        {"k": 2, "rho": 1, "delta": 1e-6, "l0": 3},
        {"k": [0], "rho": [0, math.nan], "delta": [1], "l0": [0], "share": [0, 1]},
    ),
    (
        DiscoverAndSum,
        {"rho": 1, "delta": 1e-6, "l0": 2, "low": 0, "high": 5},
        {"share": [0, 1.0], "l0": [0], "low": [5], "delta": [0], "resolution": [0], "high": [1.5]},
    ),
    (
        ClippedSums,
        {"items": ["a"], "rho": 1, "low": 0, "high": 5},
        {"items": [[], "a"], "rho": [0], "low": [5, 0.5], "resolution": [0, math.nan]},
    ),
    (
        ExponentialMechanism,
        {"items": ("a", "b"), "scale": 1},
        {"items": [*LISTS, "abc", (["a"],)], "k": [3, 0], "scale": [0, math.nan], "linf": [2**31]},
    ),
    *(
        (kind, {"items": ("a", "b"), scale: 1}, {"items": LISTS, scale: [0, math.inf], "l0": [0], "linf": [0]})
        for kind, scale in ((LaplaceCounts, "scale"), (GaussianCounts, "sigma"))
    ),
    (Stage, {"runs": 1, "epsilon": 1.2, "threshold": 1}, {"runs": [-20, 0.5], "epsilon": [-2, 0], "threshold": [0.5]}),
    (
        IterativeSparseVector,
        {"k": 2, "sigma": 1.2, "stages": ()},
        {"sigma": [0], "k": [0, 1.5], "stages": [3, (3,)], "guard": [0, 1.5]},
    ),
    (CorrelatedCounts, {"items": ("a", "b"), "rho": 1}, {"items": LISTS, "rho": [0, 1e-300]}),
    (ContributionBound, {"epsilon": 1}, {"epsilon": [0, math.nan], "percentile": [0, 100, 9.5], "most": [1]}),
    (
        SetUnion,
        {"method": "policy_laplace", "scale": 1, "delta": 1e-6, "l0": 5},
        {"method": ["x"], "scale": [0, math.nan], "delta": [0], "l0": [0], "alpha": [-1], "epsilon": [0.5]},
    ),
    (LaplaceThreshold, {"scale": 1, "delta": 1e-6, "l0": 1}, {"scale": [0.0, math.nan], "delta": [0, 1.0]}),
    (GaussianThreshold, {"sigma": 1, "delta": 1e-6, "l0": 1}, {"sigma": ["1"], "l0": [0, None], "linf": [0]}),
    (GaussianTopK, {"sigma": 1, "delta": 1e-6, "l0": 1}, {"k_bar": [0], "sigma": [1e9]}),
    (GumbelTopK, {"k": 1, "scale": 1, "delta": 1e-6}, {"k": [0, 1.5], "scale": [math.inf]}),
    (OptimalSelection, {"epsilon": 1e-9, "delta": 1e-6}, {"epsilon": [0], "delta": [1e-12]}),
    (TruncatedGeometric, {"epsilon": 1, "delta": 1e-6}, {"l0": [0]}),
    # No tail bound reaches this delta for one of so many items, nor this difference of two noises.
    (GaussianThreshold, {"sigma": 1e8, "l0": 2**30}, {"delta": [1e-300]}),
    (LaplaceThreshold, {"scale": 1e9, "l0": 2**30}, {"delta": [1e-300]}),
    (GumbelTopK, {"k": 1, "scale": 0.5, "delta": 1e-6, "tight": True}, {"linf": [2**30]}),
    # The search for noise of a tiny rho ends at once.
    (LaplaceThreshold.from_rho, {"delta": 1e-6, "l0": 2**30}, {"rho": TINY}),
    (GaussianThreshold.from_rho, {"delta": 1e-6, "l0": 1}, {"rho": TINY}),
    (LaplaceTopK.from_rho, {"delta": 1e-6, "l0": 1}, {"rho": TINY}),
    (GumbelTopK.from_rho, {"delta": 1e-6, "k": 7}, {"rho": TINY}),
    (
        BinaryMechanism.from_rho,
        {"rho": 1, "delta": 1e-6, "l0": 1, "horizon": 10},
        {
            "horizon": [0, None],
            "l0": [0],
            "rho": [math.nan],
            "delta": [1],
            "unit": ["day"],
            "linf": [2],
            "restarts": [1],
        },
    ),
    (
        BinaryMechanism.from_rho,
        {"rho": 1, "delta": 1e-6, "l0": 1, "horizon": 10, "unit": "user"},
        {"restarts": [True]},
    ),
]


@pytest.mark.parametrize(
    ("make", "given", "name", "values"),
    [(make, given, name, values) for make, given, wrong in WRONG for name, values in wrong.items()],
)
def test_a_value_out_of_range_is_refused(make, given, name, values):
    for value in values:
        with pytest.raises(SchemaError if value is MIXED else ParameterError):
            make(**{**given, name: value})
