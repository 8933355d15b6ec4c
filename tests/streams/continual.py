"""Continual mechanisms and events for the tests of streams."""

from discreet import BinaryMechanism
from discreet.streams import EpochMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism

KINDS = [BinaryMechanism, EpochMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism]
ENDLESS = {EpochMechanism: {"epoch": 4}, HybridMechanism: {}}
"""The mechanisms without a horizon, with parameters for which few rounds are in many epochs."""


def made(kind, rho=0.5, delta=1e-6, l0=1, horizon=1000):
    return kind.from_rho(rho=rho, delta=delta, l0=l0, **ENDLESS.get(kind, {"horizon": horizon}))


def events(common, rare=()):
    return [["common"]] * common + [["other"]] * (common // 2) + [[name] for name in rare]


def by_epoch(mechanism, number):
    """Return the nodes of a round's weighted sums, a list for each epoch, and the other nodes of the round."""
    is_one = isinstance(mechanism, SquareRootMechanism)
    length, squares = (2**62, 1) if is_one else (8 * (mechanism.epoch // 8 + 1), mechanism.squares)
    nodes = [node for node, _ in mechanism.nodes(number)]
    epochs = [[node for node in nodes if node // length == epoch] for epoch in range(squares)]
    return [epoch for epoch in epochs if epoch], [node for node in nodes if node // length >= squares]
