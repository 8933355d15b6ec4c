"""The key file of a stream, which holds its secret key. SENSITIVE."""

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

    The key is not in the database, because the database's rollback journal would keep a copy of it on the disk. The
    file stays open, so that `destroy` overwrites the bytes that were read, even if the path names another file by then.
    """

    def __init__(self, path: Path, handle: int) -> None:
        self._path, self._handle = path, handle
        self.key: bytes | None = None
        self._closing = weakref.finalize(self, os.close, handle)

    @classmethod
    def create(cls, path: Path, key: bytes) -> KeyFile:
        """Write a key to a new file and sync it. Raises StateError if the file exists or cannot be written."""
        try:
            self = cls(path, open_plain(path, os.O_CREAT | os.O_EXCL))
            write_all(self._handle, b"discreet stream key " + key.hex().encode() + b"\n")
        except OSError:
            raise StateError(
                f"the key file {path} cannot be written; check that it does not exist and that the disk is not full"
            ) from None
        make_durable(path.parent)
        self.key = key
        return self

    @classmethod
    def open(cls, path: Path) -> KeyFile:
        """Open a key file. `key` is None if its creation was interrupted, or if it was overwritten.

        Raises StateError if the file is missing or damaged.
        """
        try:
            self = cls(path, open_plain(path))
            content = os.read(self._handle, _SIZE + 1)
        except FileNotFoundError:
            raise StateError(
                f"the key file {path} is missing: restore the one of this stream, or start a new stream"
            ) from None
        except OSError:
            raise StateError(f"the key file {path} cannot be opened; it must be a file and not a link") from None
        try:
            self.key = read_key(content)
        except ValueError:
            raise StateError(f"the key file {path} is damaged; restore a copy of it") from None
        return self

    def destroy(self) -> None:
        """Overwrite the key with zeros, sync, and delete the file. Raises OSError if the system refuses."""
        self.key = None
        erase(self._handle)
        self.close()
        self._path.unlink(missing_ok=True)
        make_durable(self._path.parent)

    def close(self) -> None:
        """Close the file."""
        self._closing()


def new_key() -> bytes:
    """Return 32 random bytes from the operating system. Raises EntropyError if it gives none."""
    return bytes.fromhex(fresh_key())


def read_key(content: bytes) -> bytes | None:
    """Return the key in the content of a key file, or None if the content is the beginning of a key file, or zeros.

    Raises:
        ValueError: The content is something else.
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
