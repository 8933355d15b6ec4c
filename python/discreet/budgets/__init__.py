"""Privacy budgets in memory (`Budget`) and in a file (`Ledger`), and pay-what-you-get top-k lists (`Exchange`)."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.budgets.advice import require as require
    from discreet.budgets.budget import Budget as Budget
    from discreet.budgets.exchange import Exchange as Exchange
    from discreet.budgets.filter import PrivacyFilter as PrivacyFilter
    from discreet.budgets.filter import require_charging as require_charging
    from discreet.budgets.ledger import Dataset as Dataset
    from discreet.budgets.ledger import Ledger as Ledger
    from discreet.budgets.paid import watching as watching
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "budgets.budget": "Budget",
            "budgets.exchange": "Exchange",
            "budgets.ledger": "Dataset Ledger",
        },
        inner={
            "budgets.advice": "require",
            "budgets.filter": "PrivacyFilter require_charging",
            "budgets.paid": "watching",
        },
    )
