"""`Plume`: the baseline of Private Count Release, which finds items and then counts clipped contributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from discreet.errors import ParameterError
from discreet.mechanisms.base import FromRhoAndDelta
from discreet.mechanisms.counts.gaussian_counts import GaussianCounts
from discreet.mechanisms.parameters import checked_fields
from discreet.mechanisms.steps.base import StepList, Steps
from discreet.mechanisms.steps.found_items import CountAgain
from discreet.mechanisms.steps.select import Run
from discreet.mechanisms.threshold.gaussian import GaussianThreshold
from discreet.mechanisms.union.iterated_set_union import IteratedSetUnion
from discreet.mechanisms.union.set_union import SetUnion
from discreet.privacy.conversion import round_down
from discreet.privacy.validation import require_choice, require_flag, require_number, require_whole
from discreet.theorems import rogers2024

__all__ = ["Plume"]

Selection: TypeAlias = Literal["threshold", "weighted_gaussian", "dp_sips"]
"""How `Plume` finds items."""


@dataclass(frozen=True, kw_only=True)
class Plume(FromRhoAndDelta, Steps):
    """A mechanism that finds items, then counts only these.

    The search uses at most `m` items of each user: with a `GaussianThreshold`, with a weighted Gaussian `SetUnion`, in
    which users of few items count more for each, or with rounds of it (DP-SIPS, `IteratedSetUnion`). The counts use at
    most `m_prime` found items of each user, and get Gaussian noise of scale sqrt(m_prime / (2 (1 - share) rho)). The
    guarantee is delta-approximate rho-zCDP per user, added or removed. The mechanism reads the table twice. Choose m
    and m_prime without the data, or with `ContributionBound`. `discovery` and `counting` are its two stages as
    mechanisms. Release them one by one to choose m_prime among the found items, with `ContributionBound(only=)`
    (docs/mechanisms.md).

    The paper uses m_prime as the l2-sensitivity of the counts. The l2-sensitivity is sqrt(m_prime), since each of
    m_prime counts changes by one. `l2_sigma` and `printed_sigma` are the scales for both readings.

    Args:
        rho: The privacy cost in zCDP: above 0 and at most 10,000.
        delta: The probability that the guarantee fails: above 0 and below 1.
        m: The most items of one user for the search: from 1 to 2^30 with "threshold", else to 4096.
        m_prime: The most found items of one user for the counts: from 1 to 2^30.
        share: The fraction of rho for the search: above 0 and below 1.
        relative_error: If given, publish only counts above (2 + r) sigma / r, for r = relative_error: above 0 and at
            most 100.
        literal: If True, use m_prime as the l2-sensitivity, as the paper does. This scales the noise up by
            sqrt(m_prime).
        selection: How items are found: "threshold", "weighted_gaussian" or "dp_sips".

    Raises:
        ParameterError: A parameter is out of range, or the noise of the counts would have a scale outside 0.001 to 1e9.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000)] * 2, "page": ["home"] * 5000 + ["help"] * 5000}
        >>> release = dp.Plume(rho=1, delta=1e-6, m=2, m_prime=2).release(log, user="user", item="page")
        >>> sorted(release.items)
        ['help', 'home']

    Source:
        Amin et al. (2022); Rogers (2024), Sections 1 and 4, for its parameters under zCDP; Gopi et al. (2020) and
        Swanberg et al. (2023), for the set unions.
    """

    rho: float
    delta: float
    m: int
    m_prime: int
    share: float = 0.5
    relative_error: float | None = None
    literal: bool = False
    selection: Selection = "threshold"

    def __post_init__(self) -> None:
        self._set(
            m_prime=require_whole("m_prime", self.m_prime, 1, 2**30),
            literal=require_flag("literal", self.literal),
            selection=require_choice("selection", self.selection, get_args(Selection)),
        )
        self._set(m=require_whole("m", self.m, 1, 2**30 if self.selection == "threshold" else 4096))
        if self.relative_error is not None:
            self._set(relative_error=require_number("relative_error", self.relative_error, 0, 100))
        self._set(**checked_fields(self))
        try:
            _ = self.discovery
        except ParameterError as error:
            raise ParameterError(f"{error}. This is of the search for items: give another rho, delta or m") from None
        require_number("sigma, the scale of the noise of the counts,", self.sigma, 1e-3, 1e9)

    @property
    def steps(self) -> StepList:
        """Return the steps: the search for items, and their counts."""
        counts = CountAgain(sigma=self.sigma, l0=self.m_prime, relative_error=self.relative_error)
        return Run(given=self.discovery), counts

    @property
    def discovery(self) -> GaussianThreshold | SetUnion | IteratedSetUnion:
        """Return the mechanism that finds the items."""
        rho = self.share * self.rho
        if self.selection == "threshold":
            return GaussianThreshold.from_rho(rho=round_down(rho), delta=self.delta, l0=self.m)
        if self.selection == "dp_sips":
            return IteratedSetUnion.from_rho(rho=rho, delta=self.delta, l0=self.m)
        return SetUnion.from_rho(method="weighted_gaussian", rho=round_down(rho, 64), delta=self.delta, l0=self.m)

    @property
    def sigma(self) -> float:
        """Return the scale of the noise of the counts."""
        return self.printed_sigma if self.literal else self.l2_sigma

    @property
    def l2_sigma(self) -> float:
        """Return sqrt(m_prime/(2 rho)) for the rho of the counts: the scale for their l2-sensitivity, sqrt(m_prime)."""
        return rogers2024.plume_sigma(self._rest, self.m_prime)

    @property
    def printed_sigma(self) -> float:
        """Return m_prime/sqrt(2 rho) for the rho of the counts: the scale as the paper prints it."""
        return rogers2024.plume_sigma(self._rest, self.m_prime, literal=True)

    @property
    def _rest(self) -> float:
        return round_down(self.rho - self.discovery.guarantee.rho, 8)

    def counting(self, items: tuple[str | int | bytes, ...]) -> GaussianCounts:
        """Return the mechanism that counts the selected items.

        It takes a histogram of these items: `Histogram.from_table(..., l0=m_prime, only=items)`.

        Args:
            items: The selected items, at least one.

        Returns:
            A GaussianCounts.
        """
        return GaussianCounts(items=items, sigma=self.sigma, l0=self.m_prime)
