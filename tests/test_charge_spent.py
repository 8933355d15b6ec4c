"""Charges of what a release spent, by the functions and the command."""

import pytest
from command import discreet

import discreet as dp
from discreet.errors import ParameterError

LOG = {"user": [u for u in range(3000) for _ in range(2)], "item": ["home", "help"] * 3000}
COLUMNS = {"user": "user", "item": "item"}


@pytest.mark.parametrize("verb", ["count", "top_k"])
def test_a_function_charges_what_was_spent(verb):
    more = {"top_k": {"k": 50}, "count": {}}[verb]
    whole, part = dp.Budget(rho=1, delta=1e-6), dp.Budget(rho=1, delta=1e-6)
    given = {**COLUMNS, **more, "rho": 0.9, "delta": 1e-7}
    getattr(dp, verb)(LOG, **given, budget=whole)
    release = getattr(dp, verb)(LOG, **given, budget=part, charge="spent")
    assert whole.remaining.rho == pytest.approx(0.1)
    assert release.spent.rho < 0.9
    assert part.remaining.rho == pytest.approx(1 - release.spent.rho, abs=1e-9)
    assert part.remaining.rho <= 1 - release.spent.rho


def test_a_release_that_spends_everything_is_charged_everything():
    budget = dp.Budget(rho=1, delta=1e-6)
    dp.count(LOG, **COLUMNS, l0=2, rho=0.5, delta=1e-7, budget=budget, charge="spent")
    assert budget.remaining.rho == pytest.approx(0.5)


@pytest.mark.parametrize("charge", ["all", None, 1])
def test_an_unknown_charge_is_refused(charge):
    budget = dp.Budget(rho=1, delta=1e-6)
    for verb, more in (("count", {}), ("top_k", {"k": 2}), ("select", {"l0": 2})):
        with pytest.raises(ParameterError, match="charge must be"):
            getattr(dp, verb)(LOG, **COLUMNS, **more, rho=0.5, delta=1e-7, budget=budget, charge=charge)
    assert budget.remaining.rho == 1
    with pytest.raises(ParameterError, match="needs budget"):
        dp.count(LOG, **COLUMNS, rho=0.5, delta=1e-7, charge="spent")


def test_the_command_charges_what_was_spent(tmp_path):
    (tmp_path / "log.csv").write_text("user,item\n" + "".join(f"{u},home\n" for u in range(3000)))
    ledger = tmp_path / "privacy.ledger"
    discreet("budget", "init", ledger, "--dataset", "log", "--rho", "1", "--delta", "1e-6")
    asked = [tmp_path / "log.csv", "--user", "user", "--item", "item", "-k", "50", "--rho", "0.9", "--delta", "1e-7"]
    paid = ["--ledger", ledger, "--dataset", "log"]
    code, _, errors = discreet("top-k", *asked, *paid, "--charge", "spent")
    assert code == 0, errors
    assert "what was spent" in errors
    assert dp.Ledger.open(ledger).dataset("log").remaining.rho > 0.5
    # The whole guarantee still fits, and is charged by default.
    code, _, errors = discreet("top-k", *asked, *paid)
    assert code == 0, errors
    assert "the whole guarantee" in errors
    code, _, errors = discreet("top-k", *asked, "--charge", "spent")
    assert (code, "--charge spent needs --ledger" in errors) == (2, True)
