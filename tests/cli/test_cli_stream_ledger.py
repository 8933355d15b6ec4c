"""The command `discreet stream init --ledger`: the charge comes before the stream, even if the process is killed."""

import json
import os
import signal
from pathlib import Path

import pytest
from command import discreet, errors_of

from discreet import Ledger
from discreet.budgets.ledger import Dataset
from discreet.cli import main
from discreet.streams import file as stream_file

PROMISE = ("--rho", "2", "--delta", "1e-6")
LEDGER = ("--ledger", "l", "--dataset", "visits")
COST = ("--rho", "0.6", "--delta", "1e-7", "--l0", "1", "--horizon", "60")


@pytest.fixture
def ledger(tmp_path, monkeypatch):
    """Create a ledger with a total rho of 2; a stream costs 0.6. Return a function that returns the spent rho."""
    monkeypatch.chdir(tmp_path)
    assert discreet("budget", "init", "l", "--dataset", "visits", *PROMISE, "--unit", "event")[0] == 0
    return lambda: Ledger.open("l").dataset("visits").spent.rho


def init(name):
    """Run `stream init` in a forked process; return whether it ended with SIGKILL."""
    child = os.fork()
    if child == 0:
        try:
            main(["stream", "init", name, *COST, *LEDGER])
        finally:
            os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def end(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)


def files_of(name):
    return [path.name for path in Path().iterdir() if path.name.startswith(name)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_no_stream_exists_before_it_is_charged(ledger, monkeypatch):
    charge = Dataset.charge
    monkeypatch.setattr(Dataset, "charge", end)
    assert init("s")
    assert (ledger(), files_of("s")) == (0, [])
    monkeypatch.setattr(Dataset, "charge", lambda *given: end(charge(*given)))
    assert init("s")
    assert (ledger(), files_of("s")) == (pytest.approx(0.6), [])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
@pytest.mark.parametrize("point", ["named", "journal made", "key made", "making"])
def test_a_stream_killed_during_creation_is_charged(ledger, point, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(stream_file, "failure_point", lambda name: end() if name == point else None)
        assert init("s")
    assert ledger() == pytest.approx(0.6)
    assert "holds no stream" in errors_of("stream", "show", "s", code=1)
    assert discreet("stream", "init", "s", *COST, *LEDGER)[0] == 0
    assert ledger() == pytest.approx(1.2)
    assert json.loads(discreet("stream", "show", "s", "-f", "json")[1])["round"] == 0


def test_an_insufficient_budget_creates_no_stream(ledger):
    errors_of("stream", "init", "s", "--rho", "2.5", *COST[2:], *LEDGER, code=3)
    assert (ledger(), files_of("s")) == (0, [])


def test_a_stream_that_cannot_be_created_costs_nothing(ledger, tmp_path):
    (tmp_path / "left-key").touch()
    (tmp_path / "there").write_text("text")
    for name, code in (("left", 1), ("there", 2), ("missing/s", 1)):
        assert discreet("stream", "init", name, *COST, *LEDGER)[0] == code
    assert ledger() == 0
    assert (tmp_path / "there").read_text() == "text"
