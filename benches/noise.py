"""Nanoseconds per noise draw, with this library and with others on one core.

    python benches/noise.py [--case NAME] [--rounds N] [--record FILE]

A case is a distribution, and a contestant is a function that draws from the distribution. `core` is this library: exact
draws from ChaCha20. numpy's generators are neither exact nor secure. OpenDP and diffprivlib draw exactly or with
protection against rounding attacks, and take part if installed. Each round runs all contestants. A number is the median
over the rounds. This library and numpy return new arrays of 64 KiB, which allocators keep in cache. With larger arrays
the benchmark would measure page faults.
"""

from __future__ import annotations

import math
import statistics
import sys
import time

import numpy as np

import records
from discreet import _core

DRAWS = 1 << 13
PEER_DRAWS = 300


def core(kind, *parameters):
    """Draw with this library. The table of the distribution is computed before, once, as for one release."""
    rng, law = _core.Rng(), getattr(_core.Noise, kind)(*parameters)
    return lambda size: rng.sample(law, size)


def numpy_generator(name, *parameters):
    """Draw from numpy's own distribution."""
    draw = getattr(np.random.default_rng(), name)
    return lambda size: draw(*parameters, size)


def numpy_rounded(sigma):
    """Draw rounded numpy Gaussians, the usual way to get integers with Gaussian tails."""
    rng = np.random.default_rng()
    return lambda size: np.rint(rng.normal(0.0, sigma, size)).astype(np.int64)


def numpy_difference(scale):
    """Draw differences of numpy geometrics, the usual two-sided geometric noise."""
    rng, p = np.random.default_rng(), -math.expm1(-1 / scale)
    return lambda size: rng.geometric(p, size) - rng.geometric(p, size)


def opendp(kind, scale):
    """Draw with OpenDP's vector mechanism, on a vector of zeros."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l2_distance(T=float) if kind == "make_gaussian" else dp.l1_distance(T=int)
    mechanism = getattr(dp.m, kind)(dp.vector_domain(dp.atom_domain(T=int)), metric, scale)
    return lambda size: mechanism([0] * size)


def diffprivlib(kind, **parameters):
    """Draw with diffprivlib's mechanism, which adds noise to one number per call."""
    from diffprivlib import mechanisms

    mechanism = getattr(mechanisms, kind)(**parameters)
    return lambda size: [mechanism.randomise(0) for _ in range(size)]


def gaussian_case(sigma):
    contestants = {
        "core": lambda: core("discrete_gaussian", sigma),
        "numpy normal": lambda: numpy_generator("normal", 0.0, sigma),
        "numpy normal, rounded": lambda: numpy_rounded(sigma),
        "opendp": lambda: opendp("make_gaussian", sigma),
    }
    if sigma == 1.0:
        contestants["diffprivlib"] = lambda: diffprivlib("GaussianDiscrete", epsilon=1.0, delta=0.2)
    return contestants


def laplace_case(scale):
    return {
        "core": lambda: core("discrete_laplace", scale),
        "numpy laplace": lambda: numpy_generator("laplace", 0.0, scale),
        "numpy geometric difference": lambda: numpy_difference(scale),
        "opendp": lambda: opendp("make_laplace", scale),
        "diffprivlib": lambda: diffprivlib("Geometric", epsilon=1 / scale),
    }


def truncated_case(scale, bound):
    return {
        "core": lambda: core("truncated_geometric", scale, bound),
        "numpy geometric": lambda: numpy_generator("geometric", -math.expm1(-1 / scale)),
        "numpy geometric difference": lambda: numpy_difference(scale),
        "diffprivlib": lambda: diffprivlib("GeometricTruncated", epsilon=1 / scale, lower=-bound, upper=bound),
    }


CASES = {
    **{f"discrete Gaussian, sigma {s:g}": gaussian_case(s) for s in (1.0, 10.0, 100.0, 1000.0, 1e4, 1e5, 1e6)},
    **{f"discrete Laplace, scale {s:g}": laplace_case(s) for s in (1.0, 10.0, 100.0, 1000.0, 1e6)},
    **{f"truncated geometric, scale {s:g}": truncated_case(s, k) for s, k in ((1.0, 11), (10.0, 109))},
}


MISSING = set()


def contestants(case):
    """Return the installed contestants of a case, ready to draw, with the number of draws per call."""
    ready = {}
    for name, make in CASES[case].items():
        try:
            ready[name] = make(), DRAWS if name.startswith(("core", "numpy")) else PEER_DRAWS
        except ImportError as error:
            MISSING.add(str(error.name))
    return ready


def main():
    parser = records.parser(__doc__)
    parser.add_argument("--rounds", type=int, default=201, help="the number of rounds (default: 201)")
    parser.add_argument(
        "--case", action="append", choices=CASES, metavar="NAME", help="such as 'discrete Laplace, scale 1'"
    )
    options = parser.parse_args()
    record = {
        "machine": records.machine("opendp", "diffprivlib"),
        "rounds": options.rounds,
        "draws": DRAWS,
        "cases": {},
    }
    for case in options.case or CASES:
        ready = contestants(case)
        times = {name: [] for name in ready}
        for number in range(options.rounds):
            for name, (draw, size) in ready.items():
                # Fewer rounds suffice for the slow contestants.
                if size < DRAWS and number % 20:
                    continue
                started = time.perf_counter()
                draw(size)
                times[name].append((time.perf_counter() - started) / size * 1e9)
        medians = {name: statistics.median(values) for name, values in times.items()}
        ratios = {name: value / medians["core"] for name, value in medians.items() if name != "core"}
        record["cases"][case] = {"nanoseconds": medians, "over_core": ratios}
        print(
            f"{case}: core {medians['core']:.2f} ns",
            *(f"{n} {r:,.1f}x" for n, r in ratios.items()),
            sep="; ",
            flush=True,
        )
    if MISSING:
        print("not installed:", ", ".join(sorted(MISSING)), file=sys.stderr)
    records.write(options.record, record)


if __name__ == "__main__":
    main()
