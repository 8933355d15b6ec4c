"""Privacy budgets in memory (`Budget`) and in a file (`Ledger`), and pay-what-you-get top-k lists (`Exchange`)."""

from discreet.budgets.budget import Budget
from discreet.budgets.exchange import Exchange
from discreet.budgets.ledger import Dataset, Ledger

__all__ = [
    "Budget",
    "Dataset",
    "Exchange",
    "Ledger",
]
