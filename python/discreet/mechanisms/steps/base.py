"""`Steps`: a mechanism that is a list of steps, with one guarantee, one charge and one release.

A step reads the rows before the charge, and everything that may be refused is refused there. After the charge the steps
run in their order. What a step finds is public at once, so a later step may depend on it: their costs add up all the
same (Rogers 2023, Theorem 6). What would break: a step that is refused after the charge, because its error would depend
on the data; and a step whose `cost` is below that of its noise.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Never, TypeAlias, TypeVar, cast

from discreet import _core, engines
from discreet.engines.sums import summed_column
from discreet.engines.table import Table
from discreet.mechanisms.base import Mechanism, Opening, Value, opened_rng
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import checked_fields
from discreet.mechanisms.published import retold
from discreet.privacy.guarantee import Guarantee
from discreet.private import Private
from discreet.release.facts import Listed, Summed
from discreet.tables.histogram import Histogram

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.release.facts import Facts
    from discreet.release.kept import KeptShare
    from discreet.release.release import Release

__all__ = ["FindsL0", "Rows", "SoFar", "Step", "StepList", "Steps"]

Read = TypeVar("Read")


class Rows(Private):
    """The rows of a table for the steps of one release. SENSITIVE."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._numbers: NDArray[np.int64] | None = None

    def numbers(self) -> NDArray[np.int64]:
        """Return the number of items of each user, read once. A property would show it to a debugger."""
        if self._numbers is None:
            self._numbers = self._read_numbers()
        return self._numbers

    def _read_numbers(self) -> NDArray[np.int64]:
        return engines.numbers_of_items(self.table)

    def counts(self, l0: int) -> Histogram:
        """Return the number of users of each item, with at most l0 items of each user."""
        return Histogram.from_table(self.table, l0=l0)

    def taken_by(self, mechanism: Mechanism[Never, Release]) -> object:
        """Return what a mechanism takes of the table."""
        return mechanism._of_table(self.table, None)

    def require_l0(self) -> None:
        """Raise ParameterError if the engine of the rows cannot bound the items of a user, before the charge."""
        if not engines.rows_here(self.table.data):
            Histogram.from_table(self.table, l0=1, k_bar=1)


@dataclass(slots=True, kw_only=True, repr=False, eq=False)
class SoFar(Private):
    """What the steps of one release have found so far, all of it public, beside the rows, which are SENSITIVE."""

    mechanism: Steps
    table: Table
    rows: Rows
    l0: int | None = None
    """The bound on the items of a user that was found."""
    bounds: tuple[int, int] | None = None
    """The bounds of the sums of a user that were found, in steps."""
    release: Release | None = None
    """The items that were selected, and their numbers."""
    kept_share: KeptShare | None = None
    spent: Guarantee | None = None
    """What the steps cost, if it is less than their guarantee."""
    notes: tuple[str, ...] = ()

    @property
    def selected(self) -> Release:
        """The release of an earlier step, which selected the items."""
        assert self.release is not None
        return self.release


class Step(Value, ABC, Generic[Read]):
    """One step of a release: frozen parameters, with its share of rho."""

    __slots__ = ()

    reads_rows = True
    """Whether the step reads the rows of the table for itself."""

    @property
    def lists(self) -> Listed:
        """Return which items the step publishes even if nobody has them."""
        return "none"

    @abstractmethod
    def cost(self, l0: int) -> Guarantee:
        """Return the guarantee of the step with at most l0 items of a user."""

    def check(self, l0: int) -> None:
        """Raise ParameterError if the noise for at most l0 items of a user is out of range.

        For no l0 between two others it is, if it is for neither of them.
        """
        _ = self.cost(l0)

    def chance(self, users: int, l0: int) -> float | None:
        """Return the probability that the step selects an item of this many users; None if it selects none."""
        return None

    def read(self, so_far: SoFar) -> Read:
        """Return what the step reads, and refuse everything that may be refused. Nothing is charged yet."""
        return cast(Read, None)

    @abstractmethod
    def run(self, so_far: SoFar, read: Read, rng: _core.Rng) -> None:
        """Add what the step finds to `so_far`. The release is charged, so nothing here may be refused."""

    def implied(self, facts: Facts, l0: int | None, summed: Summed | None) -> Facts:
        """Return the facts of a release with those that follow from this step."""
        return facts


StepList: TypeAlias = tuple[Step[Any], ...]


class Steps(TableMechanism):
    """A mechanism that runs steps one after another, and whose guarantee is the sum of theirs.

    The fields of a subclass are its parameters, and `steps` follows from them. Parameters with a usual name are checked
    by it (`parameters.checked_fields`).
    """

    __slots__ = ()

    rho: float
    delta: float | None

    def __post_init__(self) -> None:
        self._set(**checked_fields(self))
        for l0 in self._l0s:
            for step in self.steps:
                step.check(l0)

    @property
    @abstractmethod
    def steps(self) -> StepList:
        """Return the steps in their order."""

    @property
    def _l0s(self) -> tuple[int, ...]:
        """The least and the largest bound on the items of a user; one if it is a parameter.

        The scales of noise grow with l0. So a step that takes both of them is refused for none that is found.
        """
        found = next((step.l0s for step in self.steps if isinstance(step, FindsL0)), None)
        return found or (getattr(self, "l0", None) or 1,)

    @property
    def guarantee(self) -> Guarantee:
        """Return the guarantee: delta-approximate rho-zCDP, the sum of all steps (Rogers 2023, Theorem 6)."""
        return Guarantee(self.rho, self.delta or 0.0)

    @property
    def lists_items(self) -> Listed:  # type: ignore[override]
        """Return which items are published even if nobody has them."""
        lists = {step.lists for step in self.steps}
        return "some" if "some" in lists else "all" if "all" in lists else "none"

    def release_chance(self, users: int) -> float:
        """Return the probability that an item is selected.

        Args:
            users: The number of users of the item, each with at most l0 items.

        Returns:
            A probability from 0 to 1: with a bound that is found, that of the largest one; 1 for listed items.
        """
        chances = (step.chance(users, self._l0s[-1]) for step in self.steps)
        return next((chance for chance in chances if chance is not None), 1.0)

    def _facts(self, l0: int | None, summed: Summed | None) -> Facts:
        facts = super()._facts(l0, summed)
        for step in self.steps:
            facts = step.implied(facts, l0, summed)
        return facts

    def _rows(self, table: Table) -> Rows:
        """Return the rows of a table for all steps, or raise an error for one that cannot be read by each of them."""
        if self.releases == "sums":
            summed_column(table)
        if sum(step.reads_rows for step in self.steps) > 1:
            engines.require_rows_again(table.data)
        # Only rows with a value count, and their errors come before the charge.
        return Rows(table.with_values() if self.releases == "sums" else table)

    def _read(self, table: Table, rng: _core.Rng | Opening | None) -> Release:
        so_far = SoFar(mechanism=self, table=table, rows=self._rows(table))
        steps = self.steps
        found = [step.read(so_far) for step in steps]
        rng = opened_rng(rng)
        for step, read in zip(steps, found, strict=True):
            step.run(so_far, read, rng)
        release, spent = so_far.selected, so_far.spent or self.guarantee
        return retold(release, self, *so_far.notes, kept_share=so_far.kept_share, spent=spent)


class FindsL0(Step[None]):
    """A step that finds a bound on the items of a user."""

    __slots__ = ()

    @property
    @abstractmethod
    def l0s(self) -> tuple[int, int]:
        """Return the least and the largest bound."""
