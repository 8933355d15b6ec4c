"""Continual mechanisms and events for the tests of streams."""

from discreet import BinaryMechanism
from discreet.streams import HonakerMechanism, HybridMechanism, SquareRootMechanism

KINDS = [BinaryMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism]


def made(kind, rho=0.5, delta=1e-6, l0=1, horizon=1000):
    given = {} if kind is HybridMechanism else {"horizon": horizon}
    return kind.from_rho(rho=rho, delta=delta, l0=l0, **given)


def events(common, rare=()):
    return [["common"]] * common + [["other"]] * (common // 2) + [[name] for name in rare]
