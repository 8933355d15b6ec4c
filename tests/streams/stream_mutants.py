"""Mutants: continual mechanisms with one error each in the rule that decides which estimates are released."""

import dataclasses

from discreet import BinaryMechanism
from discreet.streams import EpochMechanism, HonakerMechanism, HybridMechanism, SquareRootMechanism
from discreet.streams.release_rule import ReleaseRule

RIGHT = {
    "binary": BinaryMechanism(sigma=0.6, delta=0.05, l0=1, horizon=2),
    "epoch": EpochMechanism(rho=3.0, delta=0.1, l0=1, epoch=2),
    "Honaker": HonakerMechanism(sigma=0.6, delta=0.1, l0=1, horizon=3),
    "hybrid": HybridMechanism(rho=3.0, delta=0.1, l0=1),
    "square root": SquareRootMechanism(sigma=0.7, delta=0.3, l0=1, horizon=2),
}


class AlsoEqual(ReleaseRule):
    """A rule that also releases estimates equal to its value, with the tail for larger estimates."""

    def passed(self, estimates):
        return estimates >= self.value


def with_rule(mechanism, change):
    """Return the mechanism with another rule."""
    kind = type(mechanism)
    changed = {"rule": lambda self, number: change(kind.rule(self, number)), "__slots__": ()}
    return type(kind.__name__, (kind,), changed)(**dataclasses.asdict(mechanism))


def lower(rule):
    return dataclasses.replace(rule, value=rule.value - 1)


def equal(rule):
    return AlsoEqual(rule.value, rule.tail)


def thinner(rule):
    return ReleaseRule.least(lambda m: rule.tail(2 * m), 1, rule.chance(1))


STREAM_MUTANTS = {
    f"the {name} mechanism's {what}": (lambda mechanism=mechanism, change=change: with_rule(mechanism, change))
    for name, mechanism in RIGHT.items()
    for what, change in (
        ("threshold is passed by equal estimates too", equal),
        ("threshold is one lower", lower),
        ("threshold is for half the noise", thinner),
    )
}
