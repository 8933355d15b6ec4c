"""What all tests share: modules without tests importable from every folder, and interrupts."""

import signal
import sys
from pathlib import Path

import pytest

for folder in ("", "statistical", "budgets", "engines", "kernels", "mechanisms"):
    sys.path.insert(0, str(Path(__file__).parent / folder))


@pytest.fixture
def interrupts():
    """Interrupts as in the foreground: a shell starts its background jobs with them ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
