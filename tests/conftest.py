"""Makes `contract` and `goodness` importable from every test folder."""

import sys
from pathlib import Path

for folder in ("", "statistical"):
    sys.path.insert(0, str(Path(__file__).parent / folder))
