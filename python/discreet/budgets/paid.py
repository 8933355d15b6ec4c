"""The charge for a release, as far as it is known at any moment, even after an interrupt."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from discreet.budgets.charge import Charge
from discreet.errors import Charged

__all__ = ["Receipt", "watching"]


_begun: ContextVar[list[Receipt] | None] = ContextVar("begun", default=None)


@contextmanager
def watching() -> Iterator[list[Receipt]]:
    """Yield a list that gets the receipt of each charge in this context."""
    receipts = list[Receipt]()
    token = _begun.set(receipts)
    try:
        yield receipts
    finally:
        _begun.reset(token)


class Receipt:
    """The state of one charge. Each step is noted before or after it is made, so that no interrupt hides a charge."""

    __slots__ = ("_begun", "_state", "alone", "cost", "dataset", "release")

    def __init__(self, dataset: str, cost: Charge, *, alone: bool = False) -> None:
        self.dataset, self.cost, self.alone = dataset, cost, alone
        self.release: object = None
        """The release that was drawn and paid, once it is complete."""
        self._state = ""
        self._begun = _begun.get()

    def begin(self) -> None:
        """Note that the charge is made now: after an interrupt it may be made or not."""
        self._state = "begun"
        if self._begun is not None:
            self._begun.append(self)

    def cancel(self) -> None:
        """Note that the charge was refused or undone."""
        self._state = ""

    def made(self) -> None:
        """Note that the charge is made."""
        self._state = "made"

    @property
    def charged(self) -> Charged | None:
        """The charge as a field of an error; None if nothing was charged."""
        if not self._state:
            return None
        rho, delta = self.cost.floats()
        return Charged(self.dataset, rho, delta, self._state == "made", self.release, self.alone, self.cost.pair)

    def tell(self, error: BaseException) -> None:
        """Give an exception the attribute `charged`, and a note that says it, if anything was charged."""
        if (charged := self.charged) is not None and getattr(error, "charged", None) is None:
            setattr(error, "charged", charged)  # noqa: B010 - no exception has a field for it
            error.add_note(str(charged))
