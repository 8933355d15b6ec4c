"""How much memory counting may take: what the caller says, or half of what the machine allows."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from discreet.engines.entropy import fresh_bits
from discreet.errors import ParameterError

__all__ = ["Memory", "drawn"]

_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_LEAST = 2**28
"""The floor. 1,500,000 rows of text take 0.8 s to count in 32 MiB. They take 4 s in 4 MiB, where a thread writes nearly
every row to disk. A scan in the least memory leaves 128 MiB for counting, and 64 MiB beside the largest Parquet file on
standard input."""
_BESIDE = 2**26
"""About what DuckDB takes beyond its own limit, for what it hands over and what it has freed."""
_UNKNOWN = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that counting may take beside its input and the histogram itself."""

    total: int

    @classmethod
    def of(cls, given: int | str | None) -> Memory:
        """`given`: bytes, or text such as "2GB"; None is half of what the machine or its control group allows.

        Raises ParameterError for anything else and below 256 MiB.
        """
        if given is None:
            return cls(max(_allowed() // 2, _LEAST))
        total = given if isinstance(given, int) and not isinstance(given, bool) else _parse(given)
        if total < _LEAST:
            raise ParameterError(
                "memory must be at least 256MiB; with less, rows would be written to disk and read back many times. "
                "Allow more, or leave memory out for half of what the machine allows"
            )
        return cls(min(total, 2**62))

    @property
    def scan(self) -> int:
        """The limit of DuckDB where it scans files."""
        return self.total // 4

    @property
    def scan_threads(self) -> int:
        """How many row groups can be read at a time in that."""
        return max(1, min(os.cpu_count() or 1, self.scan // 2**27))

    @property
    def beside_scan(self) -> int:
        """What is left for counting then."""
        return self.total - self.scan - _BESIDE

    @property
    def beside_csv(self) -> int:
        """Bytes that are left for counting where CSV is read: less the batches that wait for a thread."""
        return self.total - _BESIDE


def drawn(room: int) -> int:
    """A limit in the last eighth of so many bytes, another each time.

    For what has to fit into memory: whether it does depends on the data, and an exact limit would tell whether one row
    is there. So a user's rows change the chance of a refusal by about the part of an eighth that they take up.
    Raises EntropyError where the system gives no randomness.
    """
    return room - int.from_bytes(fresh_bits(8), "little") % (room // 8)


def _parse(given: object) -> int:
    text = given.lower().strip() if isinstance(given, str) else ""
    found = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-z]*)", text)
    if found is None or found[2] not in _UNITS or ("." in found[1] and not found[2]):
        raise ParameterError('memory must be a number of bytes or text such as "2GB" or "256MiB"')
    whole, _, fraction = found[1].partition(".")
    unit = _UNITS[found[2]]
    return int(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)


def _allowed() -> int:
    """Bytes of memory of the machine, or of the control group that this process is in, where that is less."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        machine = _UNKNOWN
    return min([machine, *_group_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup"))])


def _group_limits(membership: Path, root: Path) -> list[int]:
    """The limits of a process's control group and of all above it, in either version of the interface."""
    limits = []
    try:
        for line in membership.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "memory":
                top, name = root / "memory", "memory.limit_in_bytes"
            elif not controllers:
                top, name = root, "memory.max"
            else:
                continue
            group = top / path.lstrip("/")
            # A container often sees its own group at the root, under a path that it cannot see.
            for folder in {top, *(f for f in (group, *group.parents) if f.is_relative_to(top))}:
                file = folder / name
                if file.is_file() and (text := file.read_text().strip()).isdigit():
                    limits.append(int(text))
    except (OSError, ValueError):
        pass
    return [limit for limit in limits if limit > 0]
