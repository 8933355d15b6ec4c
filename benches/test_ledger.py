"""Time of a durable charge to a ledger, of a durable row in SQLite, and of a charge to a budget in memory."""

import sqlite3

import pytest

from discreet import Budget, Guarantee, Ledger

PART = Guarantee(2.0**-40, 2.0**-60)


def bare(folder):
    """Return a function that inserts one durable row into SQLite."""
    db = sqlite3.connect(folder / "bare", isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    db.execute("CREATE TABLE event (number INTEGER PRIMARY KEY AUTOINCREMENT, text TEXT)")

    def insert():
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT INTO event (text) VALUES (?)", ("x" * 300,))
        db.execute("COMMIT")

    return insert


@pytest.mark.parametrize("who", ["ledger", "sqlite", "budget"])
@pytest.mark.benchmark(group="charge")
def test_charge(benchmark, tmp_path, who):
    if who == "sqlite":
        charge = bare(tmp_path)
    elif who == "ledger":
        dataset = Ledger.open(tmp_path / "ledger").dataset("views", rho=1.0, delta=1e-6)
        charge = lambda: dataset.charge(PART)  # noqa: E731
    else:
        budget = Budget(rho=1.0, delta=1e-6)
        charge = lambda: budget.charge(PART)  # noqa: E731
    benchmark.pedantic(charge, rounds=300, warmup_rounds=5)
