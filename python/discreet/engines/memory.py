"""Memory limits: the caller's limit, or half of the machine's memory."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from discreet.engines.entropy import fresh_bits
from discreet.errors import ParameterError

__all__ = ["Memory", "random_limit"]

_UNITS: dict[str, int] = {"": 1}
for power, letter in enumerate("kmgt", 1):
    _UNITS |= {letter: 1000**power, f"{letter}b": 1000**power, f"{letter}ib": 1024**power}
_LEAST = 2**28
"""The least memory that a caller may allow.

Counting 1,500,000 rows of text takes 0.8 s in 32 MiB. It takes 4 s in 4 MiB, because a thread then writes nearly every
row to disk. With the least memory, a scan leaves 128 MiB for counting, or 64 MiB if the largest Parquet file on
standard input is in memory too."""
_DUCKDB_EXTRA = 2**26
"""About the memory that DuckDB uses beyond its own limit, for batches it has returned and memory it has freed."""
_UNKNOWN = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that counting may use, in addition to its input and the histogram."""

    total: int

    @classmethod
    def of(cls, given: int | str | None) -> Memory:
        """Return the memory for `given`: bytes, text such as "2GB", or None for half of the machine's memory.

        A smaller limit of the process's control group or of its address space counts as the machine's memory.

        Raises:
            ParameterError: The value is of another type, or below 256 MiB.
        """
        if given is None:
            return cls(max(_machine_memory() // 2, _LEAST))
        total = given if isinstance(given, int) and not isinstance(given, bool) else _parse(given)
        if total < _LEAST:
            raise ParameterError.about(
                "{memory} must be at least 256MiB; with less, rows would be written to disk and read back "
                "many times. Allow more, or leave memory out for half of what the machine allows"
            )
        return cls(min(total, 2**62))

    @property
    def scan(self) -> int:
        """Bytes set aside for DuckDB if it scans files. They set its threads, and are a limit for databases."""
        return self.total // 4

    @property
    def scan_threads(self) -> int:
        """The number of row groups that DuckDB can read at a time in its memory."""
        return max(1, min(os.cpu_count() or 1, self.scan // 2**27))

    @property
    def beside_scan(self) -> int:
        """Bytes left for counting during a scan."""
        return self.total - self.scan - _DUCKDB_EXTRA

    @property
    def beside_csv(self) -> int:
        """Bytes left for counting while CSV or JSON lines are read, less the batches that wait for a thread."""
        return self.total - _DUCKDB_EXTRA


def random_limit(room: int) -> int:
    """Return a random limit in the last eighth of `room` bytes, a new one in every call.

    It limits data that must fit into memory. With an exact limit, a refusal could reveal whether one row is in the
    data. With a random limit, a user's rows change the probability of a refusal by about their size, divided by an
    eighth of `room`.

    Raises:
        EntropyError: The operating system provides no randomness.
    """
    return room - int.from_bytes(fresh_bits(8), "little") % (room // 8)


def _parse(given: object) -> int:
    text = given.lower().strip() if isinstance(given, str) else ""
    found = re.fullmatch(r"([0-9]{1,20}(?:\.[0-9]{1,20})?)\s*([a-z]*)", text)
    if found is None or found[2] not in _UNITS or ("." in found[1] and not found[2]):
        raise ParameterError.about('{memory} must be a number of bytes or text such as "8G", "8 GB" or "8GiB"')
    whole, _, fraction = found[1].partition(".")
    unit = _UNITS[found[2]]
    return int(whole) * unit + (int(fraction) * unit // 10 ** len(fraction) if fraction else 0)


def _machine_memory() -> int:
    """Return the bytes of memory of the machine, or the limit of the process or its control group if that is less."""
    try:
        machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        machine = _UNKNOWN
    return min([machine, *_group_limits(Path("/proc/self/cgroup"), Path("/sys/fs/cgroup")), *_address_space()])


def _address_space() -> list[int]:
    """Return the limit of the process's address space (`ulimit -v`), if there is one."""
    try:
        import resource
    except ImportError:  # Windows
        return []
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return [] if limit == resource.RLIM_INFINITY else [limit]


def _group_limits(membership: Path, root: Path) -> list[int]:
    """Return the limits of a process's control group and of its ancestors, in either version of the interface."""
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
            # A container often sees its own group as the root, so the path in the membership file does not exist.
            for folder in {top, *(f for f in (group, *group.parents) if f.is_relative_to(top))}:
                file = folder / name
                if file.is_file() and (text := file.read_text().strip()).isdigit():
                    limits.append(int(text))
    except (OSError, ValueError):
        pass
    return [limit for limit in limits if limit > 0]
