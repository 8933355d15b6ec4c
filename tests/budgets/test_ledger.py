"""`Ledger` and `Dataset`: the content of the file, its permissions, and the files that are refused."""

import contextlib
import json
import os
import sqlite3
import stat
import time

import pytest
from children import held_lock
from small import histogram, top

import discreet
from discreet import Budget, BudgetExceeded, Guarantee, GumbelTopK, Ledger
from discreet.errors import EntropyError, LedgerError, ParameterError
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
    for other in ({"rho": 2.0, "delta": 1e-6}, {"delta": 1e-7}, {"unit": "event"}):
        with pytest.raises(ParameterError, match="fixed for good"):
            Ledger.open(path).dataset("views", **other)
    with pytest.raises(ParameterError, match="unit must be"):
        Ledger.open(path).dataset("days", rho=1.0, delta=1e-6, unit="user-year")
    days = Ledger.open(path).dataset("days", rho=1.0, delta=1e-6, unit="user-day")
    days.charge(Guarantee(0.25, 0, "user-day"))
    again = Ledger.open(path).dataset("days", unit="user-day")
    assert again.spent == Guarantee(0.25, 0, "user-day")
    with pytest.raises(ParameterError, match="unit='user-day'"):
        first.charge(Guarantee(0.25, 0, "user-day"))
    with pytest.raises(ParameterError, match="fixed for good"):
        Ledger.open(path).dataset("days", unit="user")


def test_a_dataset_is_opened_with_a_total_epsilon(path):
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
    with pytest.raises(ParameterError, match=rf"the ledger {path} has .* its ledger has another path"):
        ledger.dataset("visits")
    with pytest.raises(ParameterError, match="did you mean 'views'"):
        ledger.dataset("view")
    for name in ("", " ", "a\nb", "\ud800", "x" * 201, None, 3, b"views"):
        with pytest.raises(ParameterError, match="name of a dataset"):
            ledger.dataset(name, rho=1.0, delta=1e-6)
    for rho, delta in [(0, 1e-6), (-1, 1e-6), (float("nan"), 1e-6), (1, 1), (True, 0.1), ("1", 0.1)]:
        with pytest.raises(ParameterError):
            ledger.dataset("other", rho=rho, delta=delta)
    assert ledger.datasets == ["views"]


def test_each_dataset_has_its_own_budget(path):
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
    content = path.read_bytes()
    assert b"item-0" not in content
    # Each event is a line of JSON, which other tools can read.
    lines = [json.loads(line[:-65]) for line in content[1536:].splitlines()]
    assert [line["kind"] for line in lines] == ["created", "opened", "reserved", "released"]
    assert lines[2]["mechanism"] == "GumbelTopK"
    assert lines[3]["digest"] == release.digest


def test_a_dataset_charges_as_a_budget_does(path):
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
    dataset.release(dataset.afford(discreet.queries.GumbelCorrection, share=0.25, k=30), [1] * 30)
    assert [(row.status, row.digest) for row in dataset.history] == [("released", "")]


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
def test_a_new_ledger_is_private(path):
    Ledger.open(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def database(path, kind):
    """Return the bytes of a SQLite database with this application id, which the former format had."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA application_id = {kind}")
        db.execute("CREATE TABLE event (number INTEGER)")
    return path.read_bytes()


def test_other_files_are_refused(path, tmp_path):
    with pytest.raises(LedgerError, match="not a file"):
        Ledger.open(tmp_path)
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(path, create=False)
    with pytest.raises(LedgerError, match="folder is missing, or this user may not search it"):
        Ledger.open(tmp_path / "missing" / "ledger")
    Ledger.open(path)
    newer = path.read_bytes().replace(b"discreet ledger 1 ", b"discreet ledger 2 ")
    for content, error in (
        *((content, None) for content in (b"", b"x", b"discreet ledger 1 ", b"SQLite format 3\0" + bytes(4096))),
        (b"user,item\n1,a\n" * 1000, "not a ledger"),
        (newer, "newer version"),
        (database(tmp_path / "other", 0), "not a ledger"),
        (database(tmp_path / "former", 0x64637274), "make a new ledger"),
    ):
        path.write_bytes(content)
        with pytest.raises(LedgerError, match=error):
            Ledger.open(path)
        assert path.read_bytes() == content
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(LedgerError, match="not a file"):
            Ledger.open(tmp_path / "pipe")


def test_a_path_with_a_nul_is_a_wrong_parameter(tmp_path):
    for create in (True, False):
        with pytest.raises(ParameterError, match="NUL"):
            Ledger.open(f"{tmp_path}/a\0b", create=create)


def test_a_read_only_ledger_is_read_but_not_charged(path):
    Ledger.open(path).dataset("views", rho=1.0, delta=1e-6).charge(Guarantee(0.25, 0))
    path.chmod(stat.S_IRUSR)
    ledger = Ledger.open(path)
    dataset = ledger.dataset("views")
    ledger.check()
    assert (dataset.spent, len(ledger.history)) == (Guarantee(0.25, 0), 1)
    for charge in (
        lambda: dataset.release(top(), histogram()),
        lambda: dataset.charge(Guarantee(0.1, 0)),
        lambda: ledger.dataset("more", rho=1.0, delta=1e-6),
        # Before the data is read.
        lambda: discreet.count({}, user="user", item="item", rho=0.1, delta=1e-9, budget=dataset),
    ):
        with pytest.raises(LedgerError, match="read-only") as failed:
            charge()
        assert failed.value.charged is None
    path.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert dataset.spent == Guarantee(0.25, 0)


def test_a_deleted_ledger_is_not_created_again(path):
    dataset = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    path.unlink()
    with pytest.raises(LedgerError, match="no ledger"):
        dataset.charge(Guarantee(0.1, 0))
    assert not path.exists()


def test_a_locked_ledger_is_refused_after_the_timeout(path):
    ledger = Ledger.open(path, timeout=0.3)
    dataset = ledger.dataset("views", rho=1.0, delta=1e-6)
    with held_lock(path):
        started = time.monotonic()
        with pytest.raises(LedgerError, match="locked"):
            dataset.charge(Guarantee(0.1, 0))
        assert time.monotonic() - started >= 0.3
        with pytest.raises(LedgerError, match="locked"):
            Ledger.open(path, timeout=0)
    assert dataset.spent == Guarantee(0, 0)
    dataset.charge(Guarantee(0.1, 0))
    with pytest.raises(ParameterError, match="timeout"):
        Ledger.open(path, timeout=-1)


def test_a_release_that_cannot_be_recorded_is_not_published(path, monkeypatch):
    dataset = Ledger.open(path, timeout=0).dataset("views", rho=1.0, delta=1e-6)
    run, locks = GumbelTopK._run, []

    def locked(self, data, rng):
        lock = held_lock(path)
        lock.__enter__()
        locks.append(lock)
        return run(self, data, rng)

    monkeypatch.setattr(GumbelTopK, "_run", locked)
    with pytest.raises(LedgerError, match="locked"):
        dataset.release(top(rho=0.1), histogram(), charge="spent")
    locks[0].__exit__(None, None, None)
    assert dataset.spent.rho == pytest.approx(0.1)
    assert [row.status for row in dataset.history] == ["reserved"]


def test_no_entropy_is_an_error_and_makes_no_ledger(path, monkeypatch):
    def refuse(_):
        raise OSError("no entropy")

    dataset = Ledger.open(path).dataset("views", rho=1.0, delta=1e-6)
    monkeypatch.setattr(os, "urandom", refuse)
    with pytest.raises(EntropyError):
        Ledger.open(path.with_name("new"))
    with pytest.raises(EntropyError):
        dataset.charge(Guarantee(0.1, 0))
    monkeypatch.undo()
    assert [place.name for place in path.parent.iterdir()] == [path.name]
    assert dataset.spent == Guarantee(0, 0)
