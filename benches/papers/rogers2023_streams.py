"""Largest standard deviation of running counts at rho 0.5, against the number of rounds (Rogers 2023, Section 4.3)."""

import math

import discreet as dp
import figures
from discreet import streams

KINDS = {
    "binary": dp.BinaryMechanism,
    "refined (Honaker)": streams.HonakerMechanism,
    "square root": streams.SquareRootMechanism,
    "unknown horizon": streams.EpochMechanism,
    "unknown horizon, trees": streams.HybridMechanism,
}
HEADER = ["rounds", "a release per round", *KINDS, "sqrt(H popcount)"]


def measure(small):
    found = {}
    for rounds in (8, 100, 1000) if small else (8, 100, 1000, 8_192):
        row = found[str(rounds)] = {"a release per round": math.sqrt(rounds)}
        for name, kind in KINDS.items():
            horizon = {} if name.startswith("unknown horizon") else {"horizon": rounds}
            mechanism = kind.from_rho(rho=0.5, delta=1e-6, l0=1, **horizon)
            row[name] = max(mechanism.deviation(number) for number in range(1, rounds + 1))
        row["sqrt(H popcount)"] = math.sqrt(rounds.bit_length() * max(n.bit_count() for n in range(rounds + 1)))
    return found


def rows(found):
    return ([f"{int(rounds):,}", *(f"{row[name]:.2f}" for name in HEADER[1:])] for rounds, row in found.items())


def draw(figure, found):
    lines = {name: [row[name] for row in found.values()] for name in HEADER[1:-1]}
    figures.curves(figure, [*map(int, found)], lines, xlabel="rounds", ylabel="largest sigma", scale="log")


if __name__ == "__main__":
    figures.main(HEADER, measure, rows, draw)
