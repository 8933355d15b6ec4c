"""The bar of `progress=True`, never with a number of rows, and errors of a `progress` that the caller gives."""

import io
import os
import re
import sys
import time
import types
from contextlib import redirect_stderr
from unittest.mock import patch

import numpy as np
import pytest

import discreet as dp
from discreet import progress
from discreet.errors import InputError, ParameterError

VERBS = {"count": {}, "top_k": {"k": 1}, "select": {"l0": 1}}
ROWS = {"user": np.arange(4321), "item": np.zeros(4321, int)}
ASKED = {"user": "user", "item": "item", "rho": 1, "delta": 1e-6}


class MineError(RuntimeError):
    """An error of the caller."""


def raises():
    raise MineError("stop")


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Slow:
    """A table whose rows arrive more slowly than progress is reported."""

    def __arrow_c_stream__(self, requested=None):
        pyarrow = pytest.importorskip("pyarrow")
        batch = pyarrow.record_batch(ROWS)

        def batches():
            for _ in range(4):
                time.sleep(0.15)
                yield batch

        return pyarrow.RecordBatchReader.from_batches(batch.schema, batches()).__arrow_c_stream__(requested)


def on_terminal(work):
    """Return what some work writes to a terminal."""
    with redirect_stderr(Terminal()) as terminal, patch.dict(os.environ, {"TERM": "xterm"}):
        work()
    return terminal.getvalue()


def test_a_bar_whose_thread_the_system_refuses_still_moves(monkeypatch):
    live = pytest.importorskip("rich.live")

    def refused(_):
        raise RuntimeError

    monkeypatch.setattr(live._RefreshThread, "start", refused)

    def work():
        with progress.shown_progress(True) as tick:
            tick()

    text = on_terminal(work)
    assert "reading and counting" in text
    assert text.rindex("\x1b[?25h") > text.rindex("\x1b[?25l")  # the cursor is shown again


@pytest.fixture
def notebook(monkeypatch):
    """A kernel of IPython, whose displays are kept."""
    displayed = []
    handle = types.SimpleNamespace(update=displayed.append)
    shell = types.SimpleNamespace(kernel=object())
    fake = types.ModuleType("IPython")
    fake.get_ipython = lambda: shell
    shown = types.ModuleType("IPython.display")
    shown.HTML = str
    shown.display = lambda value, display_id: displayed.append(value) or handle
    monkeypatch.setitem(sys.modules, "IPython", fake)
    monkeypatch.setitem(sys.modules, "IPython.display", shown)
    return displayed


@pytest.mark.parametrize("verb", VERBS)
def test_true_shows_a_bar_on_a_terminal_and_clears_it(verb):
    text = on_terminal(lambda: getattr(dp, verb)(ROWS, **ASKED, **VERBS[verb], progress=True))
    assert "reading and counting" in text
    assert "0:00:0" in text
    assert text.endswith("\x1b[2K")  # the line is erased
    assert not re.search(r"\d{2,}%|4,?321", text)


@pytest.mark.parametrize("verb", VERBS)
def test_true_shows_a_bar_in_a_notebook_and_empties_it(notebook, verb):
    getattr(dp, verb)(Slow(), **ASKED, **VERBS[verb], progress=True)
    bar = notebook[0]
    assert len(notebook) >= 4  # updated while rows arrive
    assert notebook[1:-1] == [bar] * (len(notebook) - 2)
    assert "reading and counting" in bar._repr_mimebundle_([], [])["text/html"]
    assert notebook[-1] == ""


def test_a_kernel_without_updates_shows_the_bar_once(notebook, monkeypatch):
    monkeypatch.setattr(sys.modules["IPython.display"], "display", lambda value, display_id: notebook.append(value))
    assert dp.count(ROWS, **ASKED, progress=True).items == [0]
    assert len(notebook) == 1


def test_an_error_ends_the_bar(notebook):
    with pytest.raises(dp.errors.SchemaError):
        dp.count(ROWS, **{**ASKED, "item": "page"}, progress=True)
    assert notebook[-1] == ""


@pytest.mark.parametrize("off", [None, False])
def test_nothing_is_shown_unless_it_is_asked_for(notebook, off):
    assert on_terminal(lambda: dp.count(ROWS, **ASKED, progress=off)) == ""
    assert notebook == []


def test_nothing_is_shown_elsewhere(capfd):
    dp.count(ROWS, **ASKED, progress=True)
    assert capfd.readouterr() == ("", "")


def test_a_python_without_standard_error_shows_nothing(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    assert dp.count(ROWS, **ASKED, progress=True).items == [0]


@pytest.mark.parametrize("verb", VERBS)
def test_another_value_is_refused_before_a_charge(verb):
    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises(ParameterError, match="progress must be True for a bar"):
        getattr(dp, verb)(ROWS, **ASKED, **VERBS[verb], progress=1, budget=budget)
    assert budget.spent.rho == 0


def test_mechanisms_of_tables_take_a_bar_too():
    table = dp.tables.Table(ROWS, user="user", item="item", progress=True)
    assert "reading and counting" in on_terminal(lambda: dp.Plume(rho=1, delta=1e-6, m=1, m_prime=1).release(table))
    with pytest.raises(ParameterError, match="progress must be"):
        dp.tables.Table(ROWS, user="user", item="item", progress="yes")


def test_ipython_on_a_terminal_is_no_notebook(monkeypatch):
    fake = types.ModuleType("IPython")
    fake.get_ipython = lambda: None
    monkeypatch.setitem(sys.modules, "IPython", fake)
    assert not progress._in_notebook()
    fake.get_ipython = lambda: types.SimpleNamespace()
    assert not progress._in_notebook()


# --- errors of the caller ---


@pytest.mark.parametrize(
    "given",
    [{}, {"l0": "auto"}, {"l0": 2, "kept_share": True}],
    ids=["count", "auto", "share"],
)
def test_an_error_of_progress_is_the_error_of_a_count(given):
    budget = dp.Budget(rho=1, delta=1e-6)
    with pytest.raises(MineError, match="stop") as raised:
        dp.count(Slow(), **ASKED, progress=raises, budget=budget, **given)
    assert raised.value.__context__ is None
    assert budget.remaining.rho == 1


def test_an_error_of_progress_is_the_error_of_a_set_union():
    with pytest.raises(MineError):
        dp.select(Slow(), **ASKED, l0=2, method="policy_laplace", progress=raises)


def test_an_interrupt_in_progress_is_an_interrupt():
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        dp.count(Slow(), **ASKED, progress=interrupted)


@pytest.mark.parametrize("kind", [StopIteration, GeneratorExit, MemoryError])
def test_an_error_that_ends_generators_is_passed_on_too(kind):
    def stops():
        raise kind("stop")

    with pytest.raises(kind, match="stop"):
        dp.count(Slow(), **ASKED, progress=stops)


def test_other_errors_stay_errors_of_the_input(tmp_path):
    (tmp_path / "log.parquet").write_bytes(b"no parquet")
    with pytest.raises(InputError):
        dp.count(tmp_path / "log.parquet", **ASKED, progress=lambda: None)
