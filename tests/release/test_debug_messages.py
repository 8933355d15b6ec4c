"""The logger "discreet" says what was chosen and why, and nothing that depends on the data."""

import logging
import re

import pytest

import discreet as dp


def logs_of(rows, caplog, tmp_path):
    """Return the messages of several calls on a log of this many users."""
    log = {"user": [*range(rows)] * 2, "page": [f"secret-{rows}"] * rows + ["other"] * rows}
    columns = {"user": "user", "item": "page"}
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "discreet"):
        budget = dp.Budget(rho=5, delta=1e-5)
        dp.count(log, **columns, rho=1, delta=1e-6, budget=budget)
        dp.count(log, **columns, epsilon=1, delta=1e-6, l0=2)
        dp.top_k(log, **columns, k=2, rho=1, delta=1e-6)
        dp.select(log, **columns, l0=2, epsilon=1, delta=1e-6)
        dp.count(log, **columns, mechanism=dp.PrivateCountRelease(rho=1, delta=1e-6))
        dp.answer_queries([rows, 3], rho=1, delta=1e-6)
        stream = dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=365).start()
        stream.step([["secret"]] * rows)
        dp.count(log, **columns, rho=1, delta=1e-6).write(tmp_path / "rows.csv", certificate=True)
    return [record.getMessage() for record in caplog.records if record.name.startswith("discreet")]


def test_messages_name_the_choice_and_its_reason(caplog, tmp_path):
    text = "\n".join(logs_of(5000, caplog, tmp_path))
    for part in (
        "count: CalibratedCounts(rho=1.0",
        "CalibratedCounts reads Table and protects",
        "was chosen: an item needs",
        "engine: this machine, because the table is a builtins.dict",
        "budget: rho 1 and delta 1e-06 were charged for CalibratedCounts",
        "answer_queries: GaussianAnswers was chosen (method=auto)",
        "stream: SquareRootMechanism",
    ):
        assert part in text, text


def test_messages_do_not_depend_on_the_data(caplog, tmp_path):
    few, many = (logs_of(rows, caplog, tmp_path) for rows in (5003, 7919))
    assert few == many
    text = "\n".join(few)
    assert not re.search("secret|5003|5,003|7919|7,919|rows.csv", text)
    assert "page" not in text


@pytest.mark.parametrize("level", ["debug", "none"])
def test_messages_are_debug_messages(caplog, level):
    with caplog.at_level(logging.DEBUG if level == "debug" else logging.INFO, "discreet"):
        dp.plan("count", rho=1, delta=1e-6, l0=2)
    assert {record.levelno for record in caplog.records} == ({logging.DEBUG} if level == "debug" else set())
