"""`Replacement`: a guarantee for neighbours in which one user's rows are replaced by another user's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

from discreet import _core
from discreet.errors import ParameterError
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.published import retold
from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.privacy.guarantee import Guarantee, Sensitivity, resolve_rho
from discreet.privacy.validation import brief
from discreet.release.facts import Facts, Summed
from discreet.release.release import Release
from discreet.tables.histogram import Histogram

__all__ = ["Replacement"]


@dataclass(frozen=True, kw_only=True)
class Replacement(HistogramMechanism):
    """A mechanism whose guarantee is about replacing one user's rows, instead of adding or removing them.

    A replacement changes up to 2 l0 counts, each by at most linf, up or down. So a mechanism that decides item by item
    must be made for 2 l0. If a mechanism ranks items, the (k_bar+1)-th count and another count may change in opposite
    directions. So the mechanism must be made for 2 linf as well. `ConfirmedCounts` has no l0 or linf to double. Its
    draws cost four times as much instead, and it ignores the number of users (docs/confirmed-counts.md).

    Use `from_rho` or `from_epsilon`, which double l0 and linf of the inner mechanism.

    Args:
        mechanism: A mechanism made for the doubled change: a threshold mechanism, `OptimalSelection`, `LaplaceTopK`,
            `GaussianTopK`, `GumbelTopK` or `ConfirmedCounts`.

    Raises:
        ParameterError: The mechanism is of another kind, or is not made for the doubled change.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.mechanisms.Replacement.from_rho(dp.GaussianThreshold, rho=1, delta=1e-6, l0=3)
        >>> mechanism.protects.l0, mechanism.mechanism.l0
        (3, 6)
        >>> mechanism.guarantee.neighbours
        'replaced'

    Source:
        Desfontaines et al. (2020) and Rogers (2023), whose theorems are about users added or removed, applied to the
        doubled change.
    """

    mechanism: HistogramMechanism

    def __post_init__(self) -> None:
        doubled, protected = _require_kind(type(self.mechanism)).doubled, self.mechanism.protects
        if (doubled and (protected.l0 or 2) % 2) or ("linf" in doubled and protected.linf % 2):
            raise ParameterError(
                "the mechanism must be made for twice the l0 or linf: use Replacement.from_rho or from_epsilon"
            )
        if isinstance(self.mechanism, GaussianThreshold) and self.mechanism.guarantee.dp is not None:
            raise ParameterError("the exact delta of a GaussianThreshold is not for replaced users: make it from rho")

    @classmethod
    def from_rho(cls, kind: type[HistogramMechanism], *, rho: float, delta: float, **parameters: float | None) -> Self:
        """Return the mechanism of a `kind` that guarantees delta-approximate rho-zCDP for replaced users.

        The kind is a class with l0 or linf, such as `GaussianThreshold`. The further parameters are those of
        `kind.from_rho`, such as l0, for one user.
        """
        return cls(mechanism=_require_kind(kind).from_rho(rho=rho, delta=delta, **_doubled(kind, parameters)))

    @classmethod
    def from_epsilon(
        cls, kind: type[HistogramMechanism], *, epsilon: float, delta: float, **parameters: float | None
    ) -> Self:
        """Return the mechanism of a `kind` that is (epsilon, delta)-DP for replaced users; parameters as `from_rho`."""
        if kind is GaussianThreshold:
            rho, own = resolve_rho(None, epsilon, delta)
            return cls.from_rho(kind, rho=rho, delta=own, **parameters)
        return cls(
            mechanism=_require_kind(kind).from_epsilon(epsilon=epsilon, delta=delta, **_doubled(kind, parameters))
        )

    @property
    def protects(self) -> Sensitivity:
        """Return the sensitivity of one user, before or after the replacement."""
        made = self.mechanism.protects
        l0 = None if made.l0 is None else made.l0 // 2
        return Sensitivity(l0=l0, linf=made.linf // 2 if "linf" in (self.mechanism.doubled or ()) else made.linf)

    @property
    def takes_least(self) -> bool:  # type: ignore[override]
        """Return whether the inner mechanism takes a histogram of counts of at least a number."""
        return self.mechanism.takes_least

    @property
    def cap(self) -> int | None:
        """Return the largest count that the inner mechanism needs, or None if it needs all counts."""
        return self.mechanism.cap

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee of the inner mechanism, for neighbours in which one user is replaced."""
        return replace(self.mechanism.guarantee, neighbours="replaced")

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is released, as the inner mechanism gives it."""
        chance: Callable[[int], float] = getattr(self.mechanism, "replacing_chance", self.mechanism.release_chance)
        return chance(users)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        made, own = self.mechanism._facts(l0, summed), self.protects
        return replace(made, replaced=True, linf=own.linf, largest_l0=own.l0)

    def _require(self, histogram: Histogram) -> None:
        self.mechanism._require(histogram)

    def _run(self, histogram: Histogram, rng: _core.Rng) -> Release:
        release = self.mechanism._run_replaced(histogram, rng)
        return retold(release, self)


def _require_kind(kind: type) -> Any:
    """Return `kind` if its l0 and linf can be doubled, or raise ParameterError."""
    if not isinstance(kind, type) or getattr(kind, "doubled", None) is None:
        raise ParameterError(
            "Replacement is for threshold mechanisms, OptimalSelection, GumbelTopK, "
            f"LaplaceTopK, GaussianTopK and ConfirmedCounts, not for {getattr(kind, '__name__', None) or brief(kind)}"
        )
    return kind


def _doubled(kind: type[HistogramMechanism], parameters: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return the parameters for the old and the new rows together.

    They have twice the l0, and twice the linf for ranked mechanisms.
    """
    twice, doubled = dict(parameters), kind.doubled or ()
    l0, linf = parameters.get("l0", 1 if "l0" in doubled else None), parameters.get("linf", 1)
    if doubled and l0 is not None:
        twice["l0"] = 2 * l0
    if "linf" in doubled:
        twice["linf"] = None if linf is None else 2 * linf
    return twice
