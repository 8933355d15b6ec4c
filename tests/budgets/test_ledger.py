"""Ledger: what is on the disk, who may write it, and what it refuses."""

import os
import sqlite3
import stat
import time

import pytest
from small import histogram, top

import discreet
from discreet import Budget, BudgetExceeded, Guarantee, GumbelTopK, Ledger, LedgerError, ParameterError
from discreet.testing import seeded_rng


@pytest.fixture
def path(tmp_path):
    return tmp_path / "privacy.ledger"


def test_a_dataset_is_opened_once_and_found_again(path):
    first = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    first.release(top(rho=0.25), histogram())
    for again in (
        Ledger.open(path).dataset("views"),
        Ledger.open(path, create=False).dataset("views", rho=1.0, delta=1e-6),
        Ledger.open(str(path)).dataset("views", rho=1.0),
    ):
        assert again.spent.rho == pytest.approx(0.25)
        assert again.remaining.rho == pytest.approx(0.75)
        assert again.remaining.delta == pytest.approx(9e-7)
    with pytest.raises(ParameterError, match="fixed for good"):
        Ledger.open(path).dataset("views", rho=2.0, delta=1e-6)
    with pytest.raises(ParameterError, match="fixed for good"):
        Ledger.open(path).dataset("views", delta=1e-7)
    with pytest.raises(ParameterError, match="fixed for good"):
        Ledger.open(path).dataset("views", unit="event")


def test_a_dataset_is_opened_by_the_epsilon_of_all_releases(path):
    dataset = Ledger.open(path).dataset("views", epsilon=1.0, delta=1e-6)
    assert dataset.guarantee == Budget(epsilon=1.0, delta=1e-6).guarantee
    assert dataset.guarantee.quoted == (1.0, 1e-6)
    assert Ledger.open(path).dataset("views", epsilon=1.0, delta=1e-6).remaining == dataset.remaining
    for other, what in (
        ({"epsilon": 2.0, "delta": 1e-6}, "fixed for good"),
        ({"epsilon": 1.0}, "delta must be"),
        ({"epsilon": 1.0, "rho": 1.0, "delta": 1e-6}, "exactly one of rho and epsilon"),
    ):
        with pytest.raises(ParameterError, match=what):
            Ledger.open(path).dataset("views", **other)


def test_an_unknown_dataset_is_refused_with_the_nearest_name(path):
    ledger = Ledger.open(path)
    ledger.dataset("views", rho=1.0, delta=1e-6)
    with pytest.raises(ParameterError, match="did you mean 'views'"):
        ledger.dataset("view")
    for name in ("", " ", "a\nb", "x" * 201, None, 3, b"views"):
        with pytest.raises(ParameterError, match="name of a dataset"):
            ledger.dataset(name, rho=1.0, delta=1e-6)
    for rho, delta in [(0, 1e-6), (-1, 1e-6), (float("nan"), 1e-6), (1, 1), (True, 0.1), ("1", 0.1)]:
        with pytest.raises(ParameterError):
            ledger.dataset("other", rho=rho, delta=delta)
    assert ledger.datasets == ["views"]


def test_datasets_have_budgets_of_their_own(path):
    ledger = Ledger.open(path)
    one, two = ledger.dataset("one", rho=1.0, delta=1e-6), ledger.dataset("two; DROP TABLE event", rho=0.1, delta=1e-6)
    one.charge(Guarantee(0.5, 0))
    with pytest.raises(BudgetExceeded):
        two.charge(Guarantee(0.5, 0))
    assert two.spent == Guarantee(0, 0)
    assert [row.dataset for row in ledger.history] == ["one"]


def test_a_release_is_recorded_without_its_data(path):
    ledger = Ledger.open(path)
    dataset = ledger.dataset("views", rho=1.0, delta=1e-6)
    release = dataset.release(top(rho=0.1, k=3), histogram())
    (row,) = dataset.history
    assert (row.mechanism, row.status, row.version) == ("GumbelTopK", "released", discreet.__version__)
    assert row.parameters.startswith("k=3, scale=")
    assert row.digest == release.digest
    assert (row.rho, row.delta) == (release.guarantee.rho, release.guarantee.delta)
    ledger.close()
    assert b"item-0" not in path.read_bytes()
    # One row a release for whoever reads the file with another tool.
    with sqlite3.connect(path) as db:
        rows = db.execute("SELECT dataset, mechanism, status, digest FROM release").fetchall()
    assert rows == [("views", "GumbelTopK", "released", release.digest)]


def test_it_pays_as_a_budget_does(path):
    dataset = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    budget = Budget(rho=1.0, delta=1e-6)
    data = histogram()
    for payer in (dataset, budget):
        payer.charge(Guarantee(0.3, 1e-7), made_by="elsewhere")
        payer.release(top(rho=0.1), data, charge="spent")
        mechanism = payer.afford(GumbelTopK, k=3, share=0.5)
        payer.release(mechanism, data)
        with pytest.raises(BudgetExceeded):
            payer.charge(Guarantee(0.5, 0.5))
        with pytest.raises(ParameterError, match="seeded"):
            payer.release(mechanism, data, rng=seeded_rng(1))
    assert dataset.spent == budget.spent
    assert dataset.remaining == budget.remaining
    assert dataset.odometer(1e-6) == budget.odometer(1e-6)
    assert [(r.rho, r.delta, r.status) for r in dataset.history] == [(r.rho, r.delta, r.status) for r in budget.history]


def test_ten_tenths_fit_and_not_one_unit_more(path):
    dataset = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    for _ in range(10):
        dataset.charge(Guarantee(0.1, 1e-7))
    with pytest.raises(BudgetExceeded):
        dataset.charge(Guarantee(2.0**-64, 0))
    assert Ledger.open(path).dataset("views").spent == dataset.spent


def test_the_verbs_charge_a_ledger(path):
    log = {"user": list(range(3000)), "item": ["x"] * 3000}
    dataset = Ledger.open(path).dataset("views", rho=0.15, delta=1e-5)
    release = discreet.count(log, user="user", item="item", rho=0.1, delta=1e-6, budget=dataset)
    assert dataset.history[0].digest == release.digest
    with pytest.raises(BudgetExceeded) as caught:
        discreet.count(log, user="user", item="item", rho=0.1, delta=1e-6, budget=dataset)
    assert caught.value.requested.rho == 0.1
    assert caught.value.remaining.rho == pytest.approx(0.05)


def test_answers_to_queries_are_recorded_without_a_digest(path):
    dataset = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    dataset.release(dataset.afford(discreet.GumbelCorrection, share=0.25, k=30), [1] * 30)
    assert [(row.status, row.digest) for row in dataset.history] == [("released", "")]


def test_rows_are_only_added(path):
    ledger = Ledger.open(path)
    ledger.dataset("views", rho=1.0, delta=1e-6).charge(Guarantee(0.5, 0))
    ledger.close()
    db = sqlite3.connect(path, isolation_level=None)
    for statement in (
        "UPDATE event SET rho = '0' WHERE number = 3",
        "DELETE FROM event WHERE number = 3",
        "INSERT OR REPLACE INTO event SELECT * FROM event WHERE number = 3",
    ):
        with pytest.raises(sqlite3.Error, match="append only"):
            db.execute(statement)
    with pytest.raises(sqlite3.Error, match="CHECK"):
        db.execute(
            "INSERT INTO event SELECT 4, time, 'refund', dataset, of, rho, delta, mechanism, parameters, "
            "version, digest, hash FROM event WHERE number = 3"
        )
    db.close()


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event SET rho = '1' WHERE number = 3",
        "UPDATE event SET dataset = 'other' WHERE number = 3",
        "DELETE FROM event WHERE number = 3",
        "DELETE FROM event WHERE number = 4",
        "INSERT INTO event SELECT 5, time, kind, dataset, of, rho, delta, mechanism, parameters, version, digest, hash "
        "FROM event WHERE number = 4",
        "UPDATE sqlite_sequence SET seq = 3",
        "PRAGMA application_id = 1",
        "PRAGMA user_version = 0",
        "CREATE TABLE other (x)",
        "",
    ],
)
def test_a_change_by_another_hand_is_noticed(path, change):
    ledger = Ledger.open(path)
    dataset = ledger.dataset("views", rho=1.0, delta=1e-6)
    for _ in range(2):
        dataset.charge(Guarantee(0.1, 0))
    ledger.close()
    with sqlite3.connect(path, isolation_level=None) as db:
        triggers = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            db.execute(f"DROP TRIGGER {name}")
        if change:
            db.execute(change)
            for _, text in triggers:
                db.execute(text)
    db.close()
    with pytest.raises(LedgerError):
        Ledger.open(path)
    with pytest.raises(LedgerError):
        ledger.check()


def test_a_newer_version_is_refused(path):
    ledger = Ledger.open(path)
    ledger.close()
    with sqlite3.connect(path, isolation_level=None) as db:
        db.execute("PRAGMA user_version = 2")
    db.close()
    with pytest.raises(LedgerError, match="newer version"):
        Ledger.open(path)


def test_an_older_copy_is_refused_by_who_has_seen_the_newer(path):
    ledger = Ledger.open(path)
    dataset = ledger.dataset("views", rho=1.0, delta=1e-6)
    ledger.close()
    backup = path.read_bytes()
    dataset.charge(Guarantee(0.9, 0))
    ledger.close()
    restored = path.with_name("restored")
    restored.write_bytes(backup)
    restored.replace(path)
    for attempt in (lambda: dataset.charge(Guarantee(0.9, 0)), lambda: dataset.remaining, ledger.check):
        with pytest.raises(LedgerError, match="rolled back"):
            attempt()
    other = path.with_name("another")
    another = Ledger.open(other)
    another.dataset("views", rho=1.0, delta=1e-6).charge(Guarantee(0.1, 0))
    another.close()
    other.replace(path)
    with pytest.raises(LedgerError, match="rolled back"):
        dataset.charge(Guarantee(0.1, 0))


def test_what_is_no_ledger_is_refused(path, tmp_path):
    with pytest.raises(LedgerError, match="not a file"):
        Ledger.open(tmp_path)
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(path, create=False)
    with pytest.raises(LedgerError, match="folder"):
        Ledger.open(tmp_path / "missing" / "ledger")
    for content in (b"", b"x", b"user,item\n1,a\n" * 1000, b"SQLite format 3\0" + bytes(4096)):
        path.write_bytes(content)
        with pytest.raises(LedgerError):
            Ledger.open(path)
        assert path.read_bytes() == content
    path.unlink()
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE event (number INTEGER)")
    db.close()
    with pytest.raises(LedgerError, match="not a ledger"):
        Ledger.open(path)
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(LedgerError, match="not a file"):
            Ledger.open(tmp_path / "pipe")


def test_a_read_only_ledger_is_refused(path):
    dataset = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    path.chmod(stat.S_IRUSR)
    with pytest.raises(LedgerError, match="read-only"):
        dataset.release(top(), histogram())
    with pytest.raises(LedgerError, match="read-only"):
        Ledger.open(path)
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert dataset.spent == Guarantee(0, 0)


def test_a_ledger_that_is_gone_is_not_made_anew(path):
    dataset = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    path.unlink()
    with pytest.raises(LedgerError, match="no ledger"):
        dataset.charge(Guarantee(0.1, 0))
    assert not path.exists()


def test_a_locked_ledger_is_waited_for_and_then_refused(path):
    ledger = Ledger.open(path, timeout=0.3)
    dataset = ledger.dataset("views", rho=1.0, delta=1e-6)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    started = time.monotonic()
    with pytest.raises(LedgerError, match="locked"):
        dataset.charge(Guarantee(0.1, 0))
    assert 0.3 <= time.monotonic() - started < 5
    assert dataset.spent == Guarantee(0, 0)
    db.execute("ROLLBACK")
    db.close()
    dataset.charge(Guarantee(0.1, 0))
    with pytest.raises(ParameterError, match="timeout"):
        Ledger.open(path, timeout=-1)


def test_nothing_is_drawn_where_the_charge_cannot_be_written(path, monkeypatch):
    dataset = Ledger.open(path, timeout=0).dataset("views", rho=1.0, delta=1e-6)
    monkeypatch.setattr(GumbelTopK, "_run", lambda *_: pytest.fail("it was drawn"))
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("BEGIN IMMEDIATE")
    with pytest.raises(LedgerError, match="locked"):
        dataset.release(top(), histogram())
    db.close()


def test_nothing_is_published_where_the_release_cannot_be_recorded(path, monkeypatch):
    dataset = Ledger.open(path, timeout=0).dataset("views", rho=1.0, delta=1e-6)
    run, others = GumbelTopK._run, []

    def locked(self, data, rng):
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        others.append(db)
        return run(self, data, rng)

    monkeypatch.setattr(GumbelTopK, "_run", locked)
    with pytest.raises(LedgerError, match="locked"):
        dataset.release(top(rho=0.1), histogram(), charge="spent")
    others[0].close()
    assert dataset.spent.rho == pytest.approx(0.1)
    assert [row.status for row in dataset.history] == ["reserved"]
