"""The secret key of a stream, in a file of its own. SENSITIVE."""

from __future__ import annotations

import os
import re
import weakref
from pathlib import Path

from discreet.engines.entropy import fresh_key
from discreet.errors import StateError
from discreet.streams.paths import erase, make_durable, open_plain, write_all

__all__ = ["KeyFile", "new_key", "read_key"]

_LINE = re.compile(rb"discreet stream key ([0-9a-f]{64})\n")
_SIZE = len(b"discreet stream key ") + 64 + 1


class KeyFile:
    """An open key file, which holds one key of 32 bytes.

    The key lies in no database: the rollback journal of a database would keep a copy of it on the disk. The file
    stays open, so that `destroy` overwrites the bytes that were read, whatever its name leads to by then.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self._path, self._handle = path, handle
        self.key: bytes | None = None
        self._closing = weakref.finalize(self, os.close, handle)

    @classmethod
    def create(cls, path: Path, key: bytes) -> KeyFile:
        """Write a key to a new file, durably. Raises StateError where the file exists or cannot be written."""
        try:
            self = cls(path, open_plain(path, os.O_CREAT | os.O_EXCL))
            write_all(self._handle, b"discreet stream key " + key.hex().encode() + b"\n")
        except OSError:
            raise StateError(f"the key file {path} cannot be made; check that it is not there already") from None
        make_durable(path.parent)
        self.key = key
        return self

    @classmethod
    def open(cls, path: Path) -> KeyFile:
        """Open a key file; `key` is None where the file was cut short while it was made, or overwritten.

        Raises StateError where there is no such file or it is damaged.
        """
        try:
            self = cls(path, open_plain(path))
            content = os.read(self._handle, _SIZE + 1)
        except FileNotFoundError:
            raise StateError(
                f"the key file {path} is gone: bring back the one that belongs to the stream, or start a new stream"
            ) from None
        except OSError:
            raise StateError(f"the key file {path} cannot be opened; it must be a file, and no link") from None
        try:
            self.key = read_key(content)
        except ValueError:
            raise StateError(f"the key file {path} is damaged; bring back a copy of it") from None
        return self

    def destroy(self) -> None:
        """Overwrite the key with zeros, durably, and delete the file. Raises OSError where the system refuses."""
        self.key = None
        erase(self._handle)
        self.close()
        self._path.unlink(missing_ok=True)
        make_durable(self._path.parent)

    def close(self) -> None:
        """Close the file."""
        self._closing()


def new_key() -> bytes:
    """Return 32 bytes from the operating system. Raises EntropyError where it refuses."""
    return bytes.fromhex(fresh_key())


def read_key(content: bytes) -> bytes | None:
    """Return the key in the content of a key file, or None where the content is a part of one, or zeros.

    Raises:
        ValueError: Where the content is anything else.
    """
    found = _LINE.fullmatch(content)
    if found is not None:
        return bytes.fromhex(found[1].decode())
    if not content.strip(b"\0") or (len(content) < _SIZE and _is_prefix(content)):
        return None
    raise ValueError("no key")


def _is_prefix(content: bytes) -> bool:
    return re.fullmatch(rb"discreet stream key [0-9a-f]*", content) is not None or b"discreet stream key ".startswith(
        content
    )
