"""The parameters with which each mechanism is audited, by class."""

from discreet import (
    GaussianThreshold,
    GaussianTopK,
    GumbelTopK,
    LaplaceThreshold,
    LaplaceTopK,
    OptimalSelection,
    PrivateCountRelease,
    TruncatedGeometric,
)
from discreet.mechanisms import (
    CorrelatedCounts,
    ExponentialMechanism,
    GaussianCounts,
    KeptPairs,
    LaplaceCounts,
)

SETS = {
    LaplaceThreshold: [
        {"scale": scale, "delta": delta, "l0": l0, "linf": linf}
        for scale, delta, l0, linf in [
            (1.0, 1e-3, 1, 1),
            (1.0, 1e-2, 2, 1),
            (0.5, 1e-4, 3, 1),
            (2.0, 1e-3, 1, 3),
            (3.3, 5e-2, 2, 2),
            (0.2, 1e-6, 1, 1),
            (5.0, 1e-2, 1, 1),
            (1.7, 0.2, 3, 1),
            (0.8, 1e-5, 2, 1),
            (1.0, 1e-9, 1, 2),
        ]
    ],
    GaussianThreshold: [
        {"sigma": sigma, "delta": delta, "l0": l0, "linf": linf, "epsilon": epsilon}
        for sigma, delta, l0, linf, epsilon in [
            (1.0, 1e-3, 1, 1, None),
            (2.0, 1e-2, 2, 1, 1.0),
            (0.5, 1e-4, 3, 1, None),
            (4.0, 1e-3, 1, 3, 0.5),
            (3.3, 5e-2, 2, 2, None),
            (0.3, 1e-6, 1, 1, 10.0),
            (5.0, 1e-2, 1, 1, 0.2),
            (1.7, 0.2, 3, 1, 2.0),
            (0.8, 1e-5, 2, 1, 3.0),
            (1.0, 1e-9, 1, 2, None),
        ]
    ],
    TruncatedGeometric: [
        {"epsilon": epsilon, "delta": delta, "l0": l0}
        for epsilon, delta, l0 in [
            (1.0, 1e-3, 1),
            (0.5, 1e-2, 1),
            (2.0, 1e-6, 1),
            (0.1, 1e-2, 1),
            (1.0, 1e-2, 2),
            (3.0, 1e-4, 3),
            (0.7, 0.3, 1),
            (1.3, 1e-9, 1),
            (5.0, 1e-3, 2),
            (0.9, 0.05, 2),
        ]
    ]
    + [
        {"epsilon": epsilon, "delta": delta, "l0": l0, "with_counts": False}
        for epsilon, delta, l0 in [(1.0, 1e-3, 1), (0.5, 1e-2, 2), (3.0, 1e-4, 3), (0.7, 0.3, 1)]
    ],
    OptimalSelection: [
        {"epsilon": epsilon, "delta": delta, "l0": l0, "pre_threshold": m}
        for epsilon, delta, l0, m in [
            (1.0, 1e-3, 1, 1),
            (0.5, 1e-2, 1, 1),
            (2.0, 1e-6, 1, 1),
            (0.1, 1e-2, 1, 3),
            (1.0, 1e-2, 2, 1),
            (3.0, 1e-4, 3, 1),
            (0.7, 0.3, 1, 1),
            (1.3, 1e-9, 1, 5),
            (5.0, 1e-3, 2, 1),
            (0.9, 0.05, 2, 2),
        ]
    ]
    + [
        {"rho": rho, "delta": delta, "l0": l0}
        for rho, delta, l0 in [(0.5, 1e-3, 1), (0.01, 0.05, 1), (2.0, 1e-6, 1), (0.3, 1e-2, 2), (0.1, 0.2, 3)]
    ],
    LaplaceTopK: [
        {"scale": scale, "delta": delta, "l0": l0, "linf": linf, "k_bar": k_bar}
        for scale, delta, l0, linf, k_bar in [
            (1.0, 1e-2, 1, 1, 1),
            (0.5, 1e-3, 2, 1, 1),
            (0.4, 1e-2, 1, 1, 2),
            (0.3, 1e-2, 2, 1, 2),
            (1.0, 1e-3, 1, 2, 1),
            (2.0, 5e-2, 1, 1, 1),
            (0.3, 1e-4, 3, 1, 1),
            (0.4, 0.1, 3, 1, 2),
            (0.2, 1e-6, 1, 1, 1),
            (0.7, 1e-2, 2, 2, 1),
        ]
    ],
    GaussianTopK: [
        {"sigma": sigma, "delta": delta, "l0": l0, "linf": linf, "k_bar": k_bar}
        for sigma, delta, l0, linf, k_bar in [
            (1.0, 1e-2, 1, 1, 1),
            (0.5, 1e-3, 2, 1, 1),
            (0.8, 1e-2, 1, 1, 2),
            (0.6, 1e-2, 2, 1, 2),
            (2.0, 1e-3, 1, 2, 1),
            (3.0, 5e-2, 1, 1, 1),
            (0.7, 1e-4, 3, 1, 1),
            (0.8, 0.1, 3, 1, 2),
            (0.4, 1e-6, 1, 1, 1),
            (1.5, 1e-2, 2, 2, 1),
        ]
    ],
    GumbelTopK: [
        {"k": k, "scale": scale, "delta": delta, "k_bar": k_bar, "l0": l0, "linf": linf}
        for k, scale, delta, k_bar, l0, linf in [
            (1, 1.0, 0.1, 2, None, 1),
            (2, 1.0, 0.1, 2, None, 1),
            (2, 2.0, 1e-2, 3, None, 1),
            (3, 0.7, 1e-2, 3, None, 1),
            (1, 0.3, 1e-4, 1, None, 1),
            (2, 1.0, 1e-2, 3, 1, 1),
            (2, 1.5, 0.05, 4, 2, 2),
            (1, 5.0, 1e-3, 2, None, 3),
            (3, 3.0, 0.2, 4, None, 1),
            (1, 1.0, 1e-6, 4, 3, 1),
        ]
    ],
    ExponentialMechanism: [
        {"items": tuple("01234"[:size]), "scale": scale, "k": k, "linf": linf, "tight": tight}
        for size, scale, k, linf, tight in [
            (3, 1.0, 1, 1, False),
            (3, 1.0, 2, 1, False),
            (4, 2.0, 2, 1, True),
            (3, 0.7, 3, 1, False),
            (2, 0.3, 1, 1, False),
            (5, 1.0, 2, 3, False),
            (4, 1.5, 3, 2, True),
            (2, 5.0, 1, 3, False),
            (5, 3.0, 4, 1, False),
            (3, 0.2, 1, 1, False),
        ]
    ],
    LaplaceCounts: [
        {"items": tuple("0123"[:size]), "scale": scale, "l0": l0, "linf": linf, "tight": tight}
        for size, scale, l0, linf, tight in [
            (3, 1.0, 1, 1, False),
            (3, 1.0, 2, 1, False),
            (2, 2.0, None, 1, True),
            (3, 0.7, 3, 1, False),
            (1, 0.3, None, 1, False),
            (4, 1.0, 2, 3, False),
            (3, 1.5, 3, 2, True),
            (2, 5.0, 1, 3, False),
            (2, 3.0, 2, 1, False),
            (3, 0.2, 2, 1, False),
        ]
    ],
    GaussianCounts: [
        {"items": tuple("0123"[:size]), "sigma": sigma, "l0": l0, "linf": linf}
        for size, sigma, l0, linf in [
            (3, 1.0, 1, 1),
            (3, 1.0, 2, 1),
            (2, 2.0, None, 1),
            (3, 0.7, 3, 1),
            (1, 0.4, None, 1),
            (4, 1.0, 2, 3),
            (3, 1.5, 3, 2),
            (2, 5.0, 1, 3),
            (2, 3.0, 2, 1),
            (3, 0.3, 2, 1),
        ]
    ],
    CorrelatedCounts: [
        {"items": tuple("0123"[:size]), "rho": rho}
        for size, rho in [(2, 1.0), (2, 0.5), (1, 0.3), (3, 9.0), (2, 2.0), (3, 20.0), (1, 0.05), (2, 20.0)]
    ],
    PrivateCountRelease: [
        {
            "rho": rho,
            "delta": calls * delta_star,
            "epsilon_star": epsilon_star,
            "delta_star": delta_star,
            "k_bar": k_bar,
            "meet_relative_error": spend,
            "linf": linf,
        }
        for rho, calls, epsilon_star, delta_star, k_bar, spend, linf in [
            (0.3, 1, 1.0, 0.1, 1, False, 1),
            (0.3, 2, 0.9, 1e-2, 2, False, 3),
            (0.5, 1, 0.5, 1e-3, 3, False, 1),
            (0.7, 2, 1.0, 0.05, 1, False, 2),
            (1.0, 2, 0.7, 1e-4, 2, False, 1),
            (2.0, 2, 2.0, 1e-2, 3, False, 1),
            (0.11, 2, 0.4, 0.2, 2, False, 1),
            (1.0, 3, 1.0, 1e-3, 1, False, 4),
            (8.0, 2, 1.5, 1e-2, 2, True, 2),
            (0.3, 1, 1.0, 1e-6, 4, False, 1),
        ]
    ],
    KeptPairs: [
        {"l0": l0, "most": most, "rho": rho, "epsilon": epsilon}
        for l0, most, rho, epsilon in [
            (1, 2, 0.5, None),
            (2, 5, None, 2.0),
            (3, 8, 1.0, None),
            (1, 4, None, 1.5),
            (4, 5, 0.6, None),
            (6, 7, None, 3.0),
            (2, 20, 2.0, None),
            (5, 10, None, 4.0),
            (1, 3, 0.3, None),
            (10, 11, 5.0, None),
        ]
    ],
}


CASES = [(kind, number) for kind, sets in SETS.items() for number in range(len(sets))]


def names(case):
    return f"{case[0].__name__}-{case[1]}"
