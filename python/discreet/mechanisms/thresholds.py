"""Threshold mechanisms: noise on every count, and the rows whose noisy counts are large enough."""

from __future__ import annotations

from abc import abstractmethod

from discreet import _core
from discreet.errors import ParameterError, SensitivityError
from discreet.mechanisms.mechanism import Mechanism
from discreet.privacy.guarantee import RHO_LIMIT, Sensitivity
from discreet.privacy.validation import require_number, require_whole
from discreet.release.release import Release
from discreet.tables.histogram import Histogram

__all__ = [
    "LINF_LIMIT",
    "NoisyCounts",
    "ThresholdMechanism",
    "check_threshold_parameters",
    "require_bounds",
    "require_complete",
    "require_delta",
    "require_rho",
]

LINF_LIMIT = 2**30
"""The largest linf: above it counts would soon leave their range."""
_L0_LIMIT = 2**30


class NoisyCounts(Mechanism):
    """What mechanisms with integer `noise` on bounded counts share."""

    __slots__ = ()

    l0: int
    linf: int

    @property
    @abstractmethod
    def noise(self) -> _core.Noise:
        """The law of the noise on every count."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """The standard deviation of the noise."""

    @property
    def protects(self) -> Sensitivity:
        """At most l0 items per user, each count moved by at most linf."""
        return Sensitivity(l0=self.l0, linf=self.linf)


class ThresholdMechanism(NoisyCounts):
    """What the histogram mechanisms share: a `threshold` that knows its own tail."""

    __slots__ = ()

    @property
    @abstractmethod
    def threshold(self) -> _core.Threshold:
        """A noisy count is released if it is larger than this."""

    def release_chance(self, count: int) -> float:
        """The chance that an item of this count is released, rounded up."""
        return self.threshold.chance(count)

    def _require(self, histogram: Histogram) -> None:
        require_complete(histogram)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        rows, noisy = self.threshold.release(histogram._counts(), rng)
        return self._published(histogram, rows, rng, noisy=noisy, sigmas=self.deviation)


def require_complete(histogram: Histogram) -> None:
    """Refuses a histogram of which only the largest counts were kept: where it was cut would show."""
    if histogram._limit is not None:
        raise SensitivityError(
            "this histogram keeps only its largest counts, and this mechanism must see all: "
            "make it without k_bar (complete=True), or use a top-k mechanism"
        )


def check_threshold_parameters(mechanism: object, scale: str) -> None:
    """Checks and normalises scale, delta, l0 and linf of a frozen mechanism.

    Raises ParameterError.
    """
    checked = {
        scale: require_number(scale, getattr(mechanism, scale), 1e-3, 1e9),
        "delta": require_delta(getattr(mechanism, "delta", None)),
    }
    checked["l0"], checked["linf"] = require_bounds(getattr(mechanism, "l0", None), getattr(mechanism, "linf", None))
    if checked["delta"] / checked["l0"] < 1e-307:
        raise ParameterError("delta is too small for the tails of noise on l0 items; give a larger one")
    for name, value in checked.items():
        object.__setattr__(mechanism, name, value)


def require_bounds(l0: object, linf: object = 1) -> tuple[int, int]:
    """The l0 and linf of a mechanism, as whole numbers in their ranges."""
    return require_whole("l0", l0, 1, _L0_LIMIT), require_whole("linf", linf, 1, LINF_LIMIT)


def require_delta(delta: object) -> float:
    """A delta above zero and below one, as a float."""
    return require_number("delta", delta, 1e-300, 1, open_low=False, open_high=True)


def require_rho(rho: float) -> float:
    """A rho that noise of a legal scale can meet."""
    return require_number("rho", rho, 1e-300, RHO_LIMIT, open_low=False)
