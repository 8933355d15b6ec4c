"""The start of the command `discreet`: the handler of Ctrl-C, SIGTERM and SIGHUP, and faster imports."""

import _signal  # type: ignore[import-not-found]
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # an import of `typing` takes milliseconds
    from types import FrameType
    from typing import NoReturn

__all__ = ["ENDS", "INTERRUPTED", "end", "handle", "hasten", "hold", "release", "restore", "state"]

INTERRUPTED = "discreet: interrupted"
_DEFAULTS = {
    int(getattr(_signal, name)): _signal.default_int_handler if name == "SIGINT" else _signal.SIG_DFL
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if hasattr(_signal, name)  # Windows has no SIGHUP
}
ENDS = tuple(_DEFAULTS)
"""The signals that end a command: SIGINT, SIGTERM and SIGHUP."""
_THREADS = "OPENBLAS_NUM_THREADS"
_hastened: list[str] = []
"""The settings that `release` undoes."""


def _stay() -> None:
    """Do nothing."""


class _State:
    """What a signal does to the command: it raises while the command works."""

    def __init__(self) -> None:
        self.stage = ""
        """Nothing in a library, then "work" or "end"."""
        self.received: list[int] = []
        """The signals since the command began."""
        self.holding = 0
        """How many pieces of work an interrupt waits for."""
        self.waits = False
        """Whether an interrupt waits."""
        self.leave = _stay
        """A function that ends the process, if DuckDB continues for a second after an interrupt."""

    @property
    def code(self) -> int:
        """The exit code after an interrupt: 128 and the number of the signal."""
        return 128 + (self.received[0] if self.received else 2)


state = _State()


def _importer(frame: "FrameType | None") -> "FrameType | None":
    """Return the frame of the code that waits for an import at this place; None if there is none."""
    found = None
    while frame is not None:
        if frame.f_code.co_filename == "<frozen importlib._bootstrap>":
            found = frame.f_back
        frame = frame.f_back
    return found


def _interrupt(*_: object) -> "NoReturn":
    raise KeyboardInterrupt


def handle(number: int, frame: "FrameType | None") -> None:
    """Handle a signal that ends the command.

    A command that ends says its charge, so it goes on after a signal. The third signal ends the process. An import ends
    before the interrupt is raised in the code that waits for it, because an exception inside of some compiled modules
    ends the process.
    """
    state.received.append(number)
    if state.stage == "end":
        if len(state.received) > 2:
            os._exit(state.code)
    elif state.holding:
        state.waits = True
    elif (importer := _importer(frame)) is not None:
        importer.f_trace = _interrupt
        sys.settrace(_no_trace)  # Python traces a frame only if there is a trace function
    else:
        raise KeyboardInterrupt


def _no_trace(*_: object) -> None:
    """Trace no new frame."""


def hold() -> None:
    """Install the handler, except for signals that another program handles or ignores, as `nohup` does."""
    state.stage, state.holding, state.waits = "work", 0, False
    state.received.clear()
    for number, default in _DEFAULTS.items():
        if _signal.getsignal(number) is default:
            try:
                _signal.signal(number, handle)
            except ValueError:  # not the main thread
                return


def end() -> None:
    """Begin the end of the command: no signal raises an exception any more."""
    state.stage = "end"


def restore() -> None:
    """Restore the handlers that `hold` has replaced."""
    state.stage, state.leave = "", _stay
    for number, default in _DEFAULTS.items():
        if _signal.getsignal(number) is handle:
            _signal.signal(number, default)


def hasten() -> None:
    """Make imports faster until `release`: the CPU time of a count of 1,000 rows falls from 215 to 150 ms.

    Garbage collection is off, because imported objects live to the end. OpenBLAS, which numpy loads, starts no threads:
    the library multiplies no large matrices.
    """
    import gc

    if gc.isenabled():
        gc.disable()
        _hastened.append("gc")
    if _THREADS not in os.environ:
        os.environ[_THREADS] = "1"
        _hastened.append(_THREADS)


def release() -> None:
    """Undo `hasten`."""
    if "gc" in _hastened:
        import gc

        gc.freeze()
        gc.enable()
    if _THREADS in _hastened:
        os.environ.pop(_THREADS, None)
    _hastened.clear()
