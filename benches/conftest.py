"""Import paths of the contestants, and of a generator that tests use."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "tests" / "mechanisms")]
