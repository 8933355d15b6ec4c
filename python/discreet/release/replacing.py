"""Files that are replaced as a whole: rows and their certificate together or neither, also if the process is killed.

A certificate waits under a third name until its rows have their name. `certificate_of` finds it there after a kill.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path

from discreet.engines import untrusted
from discreet.errors import InputError

__all__ = [
    "certificate_path",
    "has_room_for_certificate",
    "real",
    "replace",
    "require_absent",
    "require_replaceable",
    "require_room_for_certificate",
    "require_space",
    "waiting_path",
]

_ROWS = 1 << 12
"""The bytes that the folder of a file must have room for."""
_KEPT = (
    (0, b"discreet ledger ", "a ledger"),
    (0, b"SQLite format 3\0", "a stream or a database"),
    (8, b"DUCK", "a database"),
)
"""The files that no output replaces: the bytes of their heads from a place on. DuckDB's begin with a checksum."""


def certificate_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of the certificate of a file of rows."""
    return Path(f"{os.fspath(path)}.certificate.json")


def waiting_path(path: str | os.PathLike[str]) -> Path:
    """Return the path at which a new certificate waits until the rows are replaced."""
    return Path(f"{os.fspath(path)}.certificate.new")


def real(path: str | os.PathLike[str]) -> Path:
    """Return the file that a path leads to, so that a link is kept and its file replaced.

    Raises:
        InputError: The system finds no folder on the way, or no file where `os.path.realpath` does, which drops
            "nosuch/.." and the slash of "file.csv/".
    """
    found = os.path.realpath(path)
    folder = os.path.dirname(path) or "."  # noqa: PTH120 - a Path drops the slash
    if not os.path.isdir(folder):  # noqa: PTH112 - it raises nothing for a name that is too long
        raise InputError(f"cannot write {os.fspath(path)}: make its folder first; {folder} is none")
    if os.path.exists(found) and not _same(Path(path), Path(found)):  # noqa: PTH110 - as above
        raise InputError(f"cannot write {os.fspath(path)}: it is a link through a missing folder; give another name")
    return Path(found)


def replace(
    path: str | os.PathLike[str],
    write: Callable[[Path], str | None],
    certify: Callable[[str | None], str] | None = None,
    *,
    overwrite: bool = True,
    rows: bool = False,
) -> None:
    """Write a file, and replace the one that the path leads to; its mode is kept.

    `write` writes a new file at a temporary path, and may return a digest. `certify` returns the text of the
    certificate of rows with this digest. With `rows` an earlier certificate is removed if there is no new one.

    Raises:
        InputError: The file cannot be written, or exists and `overwrite` is False.
    """
    require_replaceable(path, certified=certify is not None)
    target, paper = real(path), certificate_path(path)
    now = target
    try:
        with ExitStack() as drafts:
            draft = Path(drafts.enter_context(_drafting(target)), "draft")
            digest = write(draft)
            _keep_mode(draft, target)
            new = None
            if certify is not None:
                now = paper
                new = Path(drafts.enter_context(_drafting(paper)), "draft")
                new.write_text(certify(digest), "utf-8")
                _keep_mode(new, paper)
            now = target
            if overwrite:
                _rename(draft, target, new, path if rows or new is not None else None)
                return
            if new is not None:
                now = paper
                _name(new, paper)
                now = target
            try:
                _name(draft, target)
            except BaseException:
                if new is not None and not _same(draft, target):
                    paper.unlink(missing_ok=True)
                raise
    except FileExistsError:
        raise _exists(now) from None
    except OSError as error:
        raise InputError(f"cannot write {now}: {error.strerror or 'is the disk full?'}") from None


def _rename(draft: Path, target: Path, new: Path | None, certified: str | os.PathLike[str] | None) -> None:
    """Replace a file, and the certificate of `certified` by a new one or none.

    The certificate that is not that of the file, the new one before the rows have their name and the old one after it,
    is at the waiting path. So a kill at any moment leaves rows whose certificate `certificate_of` finds.
    """
    if certified is None:
        draft.replace(target)
        return
    paper, waiting = certificate_path(certified), waiting_path(certified)
    if new is not None:
        new.replace(waiting)
    elif os.path.lexists(paper):
        paper.replace(waiting)
    try:
        draft.replace(target)
    finally:
        if os.path.lexists(waiting):  # False for a name that is too long
            waiting.replace(paper) if draft.exists() == (new is None) else waiting.unlink()


def _drafting(target: Path) -> AbstractContextManager[str]:
    """Return a new folder beside the target, which only its owner may read."""
    import tempfile

    return tempfile.TemporaryDirectory(dir=target.parent, prefix=".discreet-", ignore_cleanup_errors=True)


def _keep_mode(draft: Path, target: Path) -> None:
    """Give a draft the owner and the mode of the file that it replaces, if there is one."""
    with suppress(FileNotFoundError):
        kept, own = target.stat(), draft.stat()
        if (own.st_uid, own.st_gid) != (kept.st_uid, kept.st_gid):
            with suppress(OSError, AttributeError):  # only root gives files away
                os.chown(draft, kept.st_uid, kept.st_gid)
        draft.chmod(stat.S_IMODE(kept.st_mode))


def require_replaceable(path: str | os.PathLike[str], *, certified: bool = False) -> None:
    """Raise InputError if the path is taken by what no output replaces, or cannot be the name of a file."""
    for place in (real(path), certificate_path(path)) if certified else (real(path),):
        try:
            found, folder = place.stat(), place.parent.stat()
            if not stat.S_ISREG(found.st_mode):
                raise InputError(f"cannot write {place}: it is a folder, a pipe or a device; give another name")
            if (
                folder.st_mode & stat.S_ISVTX
                and os.name == "posix"
                and os.geteuid() not in (0, folder.st_uid, found.st_uid)
            ):
                raise InputError(f"cannot write {place}: only its owner may replace it; give another name")
            with place.open("rb") as file:
                head = file.read(64)
        except FileNotFoundError:
            continue
        except PermissionError:  # a file that cannot be read may be replaced
            continue
        except OSError as error:
            what = "its name is too long" if error.errno == errno.ENAMETOOLONG else error.strerror
            raise InputError(f"cannot write {place}: {what}; give another name") from None
        for start, mark, kind in _KEPT:
            if head.startswith(mark, start):
                raise InputError(f"cannot write {place}: it is {kind} and would be overwritten; give another name")


def require_space(folder: Path, size: int = _ROWS) -> None:
    """Raise InputError if a folder cannot get a new file of this size, which is removed again."""
    import tempfile

    try:
        with tempfile.TemporaryFile(dir=folder, prefix=".discreet-") as file:
            file.write(bytes(size))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise InputError(
            f"cannot write to the folder {folder}: {error.strerror or 'is the disk full?'}; make room, or choose "
            "another folder"
        ) from None


def has_room_for_certificate(path: str | os.PathLike[str]) -> bool:
    """Return whether the paths of the certificate are free or hold a certificate."""
    return all(map(_is_free, (certificate_path(path), waiting_path(path))))


def _is_free(place: Path) -> bool:
    if not os.path.lexists(place):
        return True
    try:
        status = place.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > untrusted.CERTIFICATE:
            return False
        with place.open("rb") as file:
            # Only JSON begins with a brace: a database, which may be large, is not read.
            content = json.load(file) if file.peek(1)[:1] == b"{" else None
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(content, dict) and {"made_by", "digest", "columns"} <= {*content}


def require_room_for_certificate(path: str | os.PathLike[str]) -> None:
    """Raise InputError if a path of the certificate holds another kind of file, such as a ledger or data."""
    if not has_room_for_certificate(path):
        place = next(place for place in (certificate_path(path), waiting_path(path)) if not _is_free(place))
        raise InputError(
            f"cannot write {os.fspath(path)}: {place} is no certificate and would be overwritten; give another name"
        )


def require_absent(path: str | os.PathLike[str]) -> None:
    """Raise InputError if a file of rows or its certificate exists."""
    for place in (Path(path), certificate_path(path)):
        if os.path.lexists(place):
            raise _exists(place)


def _exists(place: Path) -> InputError:
    return InputError(f"cannot write {place}: a file of this name has appeared; give another name")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _name(draft: Path, target: Path) -> None:
    """Give a complete file a new name; raise FileExistsError if the name is taken."""
    try:
        os.link(draft, target)
    except FileExistsError:
        raise
    except (OSError, AttributeError):  # a file system without hard links
        with target.open("xb") as copy:
            try:
                copy.write(draft.read_bytes())
                copy.flush()
                os.fsync(copy.fileno())
            except BaseException:
                target.unlink(missing_ok=True)
                raise
