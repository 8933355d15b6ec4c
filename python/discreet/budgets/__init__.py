"""What has been spent: budgets in memory and in a file, and the exchange that pays for what it gets."""

from discreet.budgets.budget import Budget
from discreet.budgets.exchange import Exchange
from discreet.budgets.ledger import Dataset, Ledger

__all__ = [
    "Budget",
    "Dataset",
    "Exchange",
    "Ledger",
]
