"""The progress of reading: a bar on terminals and in notebooks, or a function of the caller."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import TYPE_CHECKING, TypeAlias

from discreet.errors import ParameterError, raise_alone

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

__all__ = ["ProgressOption", "Tick", "require_progress", "shown_progress"]

Tick: TypeAlias = Callable[[], None]
ProgressOption: TypeAlias = Tick | bool | None
"""True for a bar, or a function that is called about ten times a second."""


def require_progress(progress: object) -> None:
    """Raise ParameterError unless `progress` is a function, True, False or None."""
    if not (progress is None or isinstance(progress, bool) or callable(progress)):
        raise ParameterError("progress must be True for a bar, or a function without arguments")


def shown_progress(progress: ProgressOption) -> AbstractContextManager[Tick | None]:
    """Return a context with the function to call during the work, or None; True shows a bar until the work ends.

    The bar has no end and no number but the elapsed time, because the number of rows is private.
    """
    require_progress(progress)
    return _Passing(progress) if callable(progress) else _bar_shown(is_shown=bool(progress))


@contextmanager
def _bar_shown(*, is_shown: bool) -> Iterator[Tick | None]:
    if not is_shown:
        yield None
    elif _in_notebook():
        yield from _shown_in_notebook()
    elif sys.stderr is not None and sys.stderr.isatty():
        from rich.console import Console

        bar = _bar(Console(stderr=True))
        try:
            with suppress(RuntimeError):  # the system refused a thread, so only the calls move the bar
                bar.start()
            bar.add_task("reading and counting", total=None)
            yield bar.refresh
        finally:
            bar.stop()
    else:
        yield None


class _Passing:
    """A context with a function that calls `progress`. It raises what `progress` raises as it is.

    Engines replace other exceptions by an InputError, because these may quote cells. The caller's function has no
    cells. A generator could not raise a StopIteration.
    """

    def __init__(self, progress: Tick) -> None:
        self._progress = progress
        self._raised: list[BaseException] = []

    def __enter__(self) -> Tick:
        return self._called

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is not None and self._raised:
            raise_alone(self._raised[0])

    def _called(self) -> None:
        try:
            self._progress()
        except BaseException as error:
            self._raised.append(error)
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
