"""What a fresh Jupyter kernel shows without a magic command: pictures of plots, and tables of public values."""

import importlib.util
from pathlib import Path

import pytest

for needed in ("nbclient", "ipykernel", "matplotlib"):
    pytest.importorskip(needed)

spec = importlib.util.spec_from_file_location("cells", Path(__file__).resolve().parent.parent / "docs" / "cells.py")
cells = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cells)

START = """
import tempfile
import discreet as dp
log = {"user": [n for n in range(4000) for _ in range(3)], "page": ["a", "b", "c"] * 4000}
columns = {"user": "user", "item": "page"}
folder = tempfile.TemporaryDirectory()
ledger = dp.Ledger.open(folder.name + "/privacy.ledger")
dataset = ledger.dataset("views", rho=1, delta=1e-5)
budget = dp.Budget(rho=1, delta=1e-5)
for paid in (budget, dataset):
    release = dp.count(log, **columns, rho=0.3, delta=1e-6, budget=paid)
stream = dp.Stream.recommended(rho=0.5, delta=1e-6, l0=1, horizon=8).start()
for _ in range(3):
    stream.step([["home"]] * 900 + [["help"]] * 800);
"""
PICTURES = [
    "release.plot()",
    "dp.plan('count', rho=1, delta=1e-6, l0=5).plot()",
    "stream.plot()",
    "budget.plot()",
    "dataset.plot()",
    "ledger.plot()",
]
TABLES = ["release", "budget", "dataset", "ledger", "release.guarantee", "budget.history", "release.compare(release)"]
TEXTS = ["dp.plan('count', rho=1, delta=1e-6)", "dp.plan('answer_queries', k=9, rho=1, delta=1e-6)"]
PROGRESS = "dp.count(log, **columns, rho=0.3, delta=1e-6, progress=True)"


@pytest.fixture(scope="module")
def shown():
    """Run each cell in one kernel, and return the outputs of each cell."""
    codes = [cells.new_code_cell(code) for code in (START, *PICTURES, *TABLES, *TEXTS, PROGRESS)]
    cells.execute(cells.new_notebook(cells=codes), 120)
    return {cell.source: cell.outputs for cell in codes}


@pytest.mark.parametrize("code", PICTURES)
def test_a_plot_is_shown_once_as_a_picture(shown, code):
    (output,) = shown[code]
    assert len(output.data["image/png"]) > 1000


@pytest.mark.parametrize("code", TABLES)
def test_a_public_value_is_shown_as_a_table(shown, code):
    (output,) = shown[code]
    assert "<table>" in output.data["text/html"]


@pytest.mark.parametrize("code", TEXTS)
def test_a_plan_is_shown_as_text_with_its_lines(shown, code):
    (output,) = shown[code]
    assert output.data["text/html"].startswith("<pre")


def test_the_bar_is_gone_when_the_work_ends(shown):
    bar, release = shown[PROGRESS]
    assert bar.data["text/html"] == ""
    assert "<table>" in release.data["text/html"]
