"""Files of rows and certificates from others: kinds that cannot be read, and limits of size."""

import os
import socket
import sys

import pytest

import discreet as dp
from discreet.engines import untrusted
from discreet.engines.sql import connect
from discreet.errors import InputError
from discreet.formats import RELEASED

DOORS = {"read": dp.Release.read, "verify": dp.verify}
doors = pytest.mark.parametrize("door", DOORS.values(), ids=DOORS)
suffixes = pytest.mark.parametrize("suffix", RELEASED)


def bound(path):
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(path))


def sparse(path):
    with path.open("wb") as file:
        file.truncate(1 << 40)


KINDS = {
    "folder": lambda path: path.mkdir(),
    "loop": lambda path: path.symlink_to(path),
    "terabyte": sparse,
    "pipe": lambda path: os.mkfifo(path),
    "socket": bound,
    **{name: lambda path, name=name: path.symlink_to(f"/dev/{name}") for name in ("zero", "full", "null", "stdin")},
}


def written(folder, suffix):
    path = folder / f"rows.{suffix}"
    items = [f"item {number:05}" for number in range(200)]
    table = dp.Histogram.from_counts(items, [10_000] * 200, l0=1, linf=1, complete=True)
    # A count of 10,000 is 1,900 deviations above the threshold.
    dp.GaussianThreshold(sigma=5.0, delta=1e-6, l0=1).release(table).write(path, certificate=True)
    return path, folder / f"rows.{suffix}.certificate.json"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other kinds of files")
@doors
@suffixes
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("place", [0, 1], ids=["rows", "certificate"])
def test_files_of_other_kinds_are_input_errors(tmp_path, monkeypatch, door, suffix, kind, place):
    monkeypatch.chdir(tmp_path)  # the path of a socket has at most 108 bytes
    changed = written(tmp_path, suffix)[place]
    changed.unlink()
    kind(changed.relative_to(tmp_path) if kind is bound else changed)
    if suffix == "csv" and kind is sparse and door is dp.verify and place == 0:
        return  # its hash takes no memory, but a terabyte takes hours
    with pytest.raises(InputError, match=r"rows\."):
        door(f"rows.{suffix}")


@doors
@suffixes
@pytest.mark.parametrize(("limit", "most"), [("MOST_CELLS", 300), ("MOST_BYTES", 1500)])
def test_rows_over_a_limit_are_an_input_error(tmp_path, monkeypatch, door, suffix, limit, most):
    path, _ = written(tmp_path, suffix)
    door(path)
    monkeypatch.setattr(untrusted, limit, most)
    if suffix == "csv" and door is dp.verify:
        door(path)  # it takes no memory to hash the rows
    else:
        with pytest.raises(InputError, match=rf"rows\.{suffix}: it has more than .* cells"):
            door(path)


@doors
@suffixes
def test_a_certificate_over_a_mebibyte_is_an_input_error(tmp_path, door, suffix):
    path, certificate = written(tmp_path, suffix)
    certificate.write_text(certificate.read_text() + " " * untrusted.CERTIFICATE)
    with pytest.raises(InputError, match="certificate"):
        door(path)


@pytest.mark.parametrize(
    "rows",
    [
        "SELECT 'a' AS item, 1 AS count, 1.0::DOUBLE AS sigma FROM range(6000000)",
        "SELECT repeat('x', 1000000) AS item, 1 AS count, 1.0::DOUBLE AS sigma FROM range(300)",
        "SELECT range(10) AS item, 1 AS count, 1.0::DOUBLE AS sigma",
    ],
    ids=["rows", "text", "nested"],
)
def test_a_small_parquet_file_of_many_cells_is_refused(tmp_path, rows):
    path, _ = written(tmp_path, "parquet")
    connect().execute(f"COPY ({rows}) TO '{path}' (FORMAT parquet, COMPRESSION zstd)")
    for door in DOORS.values():
        with pytest.raises(InputError, match="cannot read"):
            door(path)
