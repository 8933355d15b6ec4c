"""Memory limits: random ones for data that must fit into memory, and batches of long labels."""

import subprocess
import sys

import numpy as np
import pytest

from discreet.engines.memory import random_limit

ROOM = 2**30


def test_a_random_limit_is_uniform_in_the_last_eighth():
    limits = np.array([random_limit(ROOM) for _ in range(400)])
    assert len(np.unique(limits)) > 390
    assert limits.max() <= ROOM
    assert limits.min() > ROOM - ROOM // 8
    # Each of 8 equal parts of the last eighth expects 50 of 400 limits, with a standard deviation of 6.6.
    parts = np.bincount((ROOM - limits) * 8 // (ROOM // 8), minlength=8)
    assert len(parts) == 8
    assert parts.min() > 50 - 6 * 6.6


JOINED = """
import resource
import numpy, pyarrow
from discreet import engines

rows = numpy.arange(300_000)
texts = [str(number) * 4000 for number in range(4)]
first, second = (
    pyarrow.DictionaryArray.from_arrays(pyarrow.array(part % 4, "int32"), texts) for part in (rows, rows // 4)
)
table = pyarrow.table({"user": rows // 3, "a": first, "b": second})
columns = {"user": "user", "item": ["a", "b"]}
engines.histogram(engines.Table({"user": [1], "a": ["a"], "b": ["b"]}, **columns))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
counts = engines.histogram(engines.Table(table, **columns, memory="256MiB")).counts
assert counts.sum() == len(rows)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems give the resident size in other units")
def test_joined_labels_of_8_kib_stay_within_the_limit():
    pytest.importorskip("pyarrow")
    # Rows that were joined 65,536 at a time took 1,071 MiB here.
    ran = subprocess.run([sys.executable, "-c", JOINED], capture_output=True, check=True, text=True)
    assert int(ran.stdout) / 1024 < 256
