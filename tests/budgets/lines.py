"""Calls that something interrupts at a chosen line of the package, and functions that threads run together."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import discreet

PACKAGE = str(Path(discreet.__file__).parent)


def at_line(number, call, act, counts=lambda frame: True):
    """Run `call`, and run `act` once before line `number` of the package, of the lines that count."""
    seen = 0

    def trace(frame, event, _):
        nonlocal seen
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        if event == "line" and counts(frame):
            seen += 1
            if seen == number:
                sys.settrace(None)
                act()
        return trace

    sys.settrace(trace)
    try:
        return call()
    finally:
        sys.settrace(None)


def together(work, threads=8):
    """Run `work` in several threads at once. Return the results, or raise the first error."""
    with ThreadPoolExecutor(threads) as pool:
        return [done.result() for done in [pool.submit(work) for _ in range(threads)]]
