"""The progress of reading: a bar on terminals and in notebooks, or a function of the caller."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeAlias

from discreet.errors import ParameterError, raise_alone

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

__all__ = ["ProgressOption", "Tick", "require_progress", "shown"]

Tick: TypeAlias = Callable[[], None]
ProgressOption: TypeAlias = Tick | bool | None
"""True for a bar, or a function that is called about ten times a second."""


def require_progress(progress: object) -> None:
    """Raise ParameterError unless `progress` is a function, True, False or None."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ParameterError("progress must be True for a bar, or a function without arguments")


@contextmanager
def shown(progress: ProgressOption) -> Iterator[Tick | None]:
    """Yield the function to call during the work, or None; True shows a bar until the work ends.

    The bar has no end and no number but the elapsed time, because the number of rows is private.
    """
    require_progress(progress)
    if progress is None or progress is False:
        yield None
    elif callable(progress):
        yield from _passing(progress)
    elif _in_notebook():
        yield from _shown_in_notebook()
    elif sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        with _bar(Console(stderr=True)) as bar:
            bar.add_task("reading and counting", total=None)
            yield bar.refresh
    else:
        yield None


def _passing(progress: Tick) -> Iterator[Tick]:
    """Yield a function that calls `progress`, and raise what `progress` raises as it is.

    Engines replace other exceptions by an InputError, because these may quote cells. The caller's function has no
    cells.
    """
    raised: list[BaseException] = []

    def called() -> None:
        try:
            progress()
        except BaseException as error:
            raised.append(error)
            raise

    try:
        yield called
    except BaseException:
        if raised:
            raise_alone(raised[0])
        raise


def _bar(console: object = None) -> Bar:
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True)  # type: ignore[arg-type]  # rich takes None


def _in_notebook() -> bool:
    """Return whether the kernel of a notebook runs this process. IPython on a terminal has no kernel."""
    get = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return getattr(get() if get else None, "kernel", None) is not None


def _shown_in_notebook() -> Iterator[Tick | None]:
    """Show a bar in the output of a cell; empty the output at the end, so that a saved notebook has no elapsed time."""
    from IPython.display import HTML, display

    bar = _bar()  # rich's own display in a notebook would need ipywidgets
    bar.add_task("reading and counting", total=None)
    handle = display(bar, display_id=True)
    if handle is None:  # a kernel without displays that can be updated
        yield None
        return
    try:
        yield lambda: handle.update(bar)
    finally:
        handle.update(HTML(""))
