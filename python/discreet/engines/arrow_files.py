"""Files that `pyarrow.dataset` reads, such as Arrow and Feather files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from discreet.engines import files
from discreet.errors import InputError, needs, raise_alone

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

__all__ = ["arrow_files"]

_STREAM = b"\xff\xff\xff\xff"
"""The first bytes of an Arrow stream. An Arrow file begins with its name."""


def arrow_files(source: files.Source) -> list[Dataset]:
    """Return each file as a dataset. pyarrow would cast the cells of combined files to the types of the first file.

    Raises:
        InputError: A file cannot be read. The text names the file.
    """
    with needs("pyarrow"):
        from pyarrow import dataset
    found = []
    for path in source.paths:
        try:
            found.append(dataset.dataset(path, format=source.form.dataset))
        except Exception:  # pyarrow's text may quote the file
            with open(path, "rb") as file:
                is_stream = file.read(len(_STREAM)) == _STREAM
            remedy = "it is an Arrow stream; in Python give pyarrow.ipc.open_stream(FILE).read_all()"
            other = "the file must be complete and match its suffix"
            raise_alone(InputError(f"cannot read {path} as {source.form.name}: {remedy if is_stream else other}"))
    return found
