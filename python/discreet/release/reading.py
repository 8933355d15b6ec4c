"""Files that `Release.write` wrote, read as untrusted input: anything unexpected is an InputError."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from discreet.engines import untrusted
from discreet.engines.projection import EVERY
from discreet.errors import DiscreetError, InputError, ParameterError, ResourceError
from discreet.formats import require_suffix, suffix_of
from discreet.privacy.guarantee import Guarantee
from discreet.privacy.validation import require_path
from discreet.release import export
from discreet.release.aggregates import in_column_units, read_aggregates
from discreet.release.blocks import distinct_keys
from discreet.release.cells import RANGES, Cells, CellsByColumn, Damaged, converted, json_object, stored
from discreet.release.facts import KINDS, LISTED, Facts, Summed, summed_of
from discreet.release.intervals import LAWS
from discreet.release.kept import l0_and_share
from discreet.release.made_by import facts_of
from discreet.release.provenance import Provenance
from discreet.release.rows import METHODS, NUMBERS

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["digests_of", "is_certified", "is_empty", "read"]

_MEASURES: tuple[list[str], ...] = ([], ["rank"], [*NUMBERS], [*NUMBERS, "method"])
"""The columns after those of the items."""
_TYPES = ("string", "binary", *RANGES)
_TEXTS = ("bool", "date", *(f"timestamp[{unit}{zone}]" for unit in ("us", "ns") for zone in ("", ", UTC")))
"""The types of a column of items whose cells are text in a release."""
_TIME = [
    rf"\d{{4}}-\d\d-\d\dT(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.{digits})?" for digits in (r"\d{6}", r"\d{6}(?:\d{3})?")
]
"""The text of a time in microseconds, and in nanoseconds."""
_NANOS = ("1677-09-21T00:12:43.145224193", "2262-04-11T23:47:16.854775807")
"""The first and the last time in nanoseconds."""
_Choice = TypeVar("_Choice", bound=str)
_UNSHOWN = (
    "the mechanism needs a bound on the items of a user, and no file can show that it clipped no count: the counts are "
    "taken for clipped ones"
)
_LONGEST = 1 << 20
"""The most characters of a text in a header: a mechanism may name many public items."""
_MOST = 2**62
"""The limit of whole numbers: the difference of two of them has 64 bits. No count or sum of a release reaches it."""


def read(path: str | os.PathLike[str], *, agreeing: bool = False) -> untrusted.Fields:
    """Return the fields of the release in a file. With `agreeing`, its rows are known to have their digest.

    Raises:
        ParameterError: The suffix is not a format of rows.
        InputError: The file or its certificate is missing, damaged or changed, or exceeds the limits of `untrusted`.
        ResourceError: The system gives too little memory.
    """
    source = Path(require_path(path))
    form = require_suffix(source)
    if not os.path.isfile(source):  # noqa: PTH113 - it raises nothing for a name that is too long
        raise InputError(f"cannot read {source}: no such file")
    try:
        cells, own = stored(source, form, agreeing=agreeing)
        certificate = _certificate(source)
        header = own if certificate is None else certificate
        if header is None:
            raise InputError(
                f"cannot read {source} as a release: a {form} file has rows alone, and its certificate "
                f"{export.certificate_path(source)} is missing. Write the release with certificate=True"
            )
        fields = _fields(header, cells, form)
        # The digest of a CSV file is that of its text, which could have cells such as 1_000.
        if certificate is not None and (form == "csv" or not agreeing):
            _require_agreement(fields, own, certificate)
    except Damaged as fault:
        raise InputError(f"cannot read {source} as a release: {fault}") from None
    except MemoryError:
        raise ResourceError(f"the system gave too little memory to read {source}; read it in another process") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        raise InputError(
            f"cannot read {source} as a release: the file is damaged, or was not written by Release.write"
        ) from None
    origin = source.name if certificate is not None else f"{source.name}, which has no certificate"
    checked = "its rows match its certificate" if certificate is not None else "nothing shows whether rows were changed"
    note = f"read from {export.plain_text(origin)}: {checked}. The guarantee is what the file claims"
    if fields["summed"] is not None and not _has_own_unit(header, fields["summed"]):
        unit = fields["summed"].resolution or 1
        if unit != 1 and fields["counts"] is not None:
            fields |= {"counts": in_column_units(fields["counts"], unit), "sigmas": fields["sigmas"] * unit}
    return {**fields, "notes": (*fields["notes"], note), "claimed": True}


def _has_own_unit(header: untrusted.Fields, summed: Summed) -> bool:
    """Return whether sums are in the unit of their column; former versions wrote steps, in columns of counts."""
    return summed.columns[0] in header.get("columns", [])


def digests_of(path: str | os.PathLike[str]) -> set[str]:
    """Return the SHA-256 of the rows in a file of any format, or no digest if there is no such file of rows.

    Certificates are not read. A report names the digest, and its whole text could name more.
    """
    source = Path(path)
    form = suffix_of(source)
    try:
        if form == "html":
            return {*re.findall(r"\b[0-9a-f]{64}\b", untrusted.content(source).decode())}
        if form == "csv":
            return {export.file_digest(source, [], {})}
        cells, own = stored(source, form, agreeing=False)
        names = [*cells] if own is None else own["columns"]
        return {export.file_digest(source, names, own or {})}
    except (DiscreetError, OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError):
        return set()


def is_certified(path: str | os.PathLike[str], digest: str) -> bool:
    """Return whether a file has a certificate of rows with this digest."""
    try:
        certificate = _certificate(Path(path))
    except (Damaged, DiscreetError, OSError, ValueError, RecursionError):
        return False
    return certificate is not None and certificate["digest"] == digest


def is_empty(path: str | os.PathLike[str]) -> bool:
    """Return whether a file whose digest is known has no rows."""
    source = Path(path)
    return not any(stored(source, suffix_of(source), agreeing=False)[0].values())


def _empty(names: Iterable[str]) -> CellsByColumn:
    return {name: [] for name in names}


def _certificate(source: Path) -> untrusted.Fields | None:
    """Return the content of a file's certificate, or None if there is none."""
    place = export.certificate_of(source)
    if not os.path.lexists(place):
        return None
    if not export.has_room_for_certificate(source):
        raise Damaged(f"{place} is not a certificate")
    content = json_object(json.loads(untrusted.content(place, untrusted.CERTIFICATE), object_pairs_hook=distinct_keys))
    if not isinstance(content.get("digest"), str):
        raise Damaged("its certificate has no digest")
    return content


def _require_agreement(fields: untrusted.Fields, own: untrusted.Fields | None, certificate: untrusted.Fields) -> None:
    """Raise if the rows of a file, or its own header, are not those of its certificate."""
    if own is not None and any(value != certificate.get(name) for name, value in own.items()):
        raise Damaged("its header and its certificate differ. Restore the files that were written together")
    count, sigma = _number_names(certificate, fields["summed"])
    kinds = {"rank": "int64", count: "int64", sigma: "float64", "method": "string"}
    confirmed = fields["confirmed"]
    methods = None if confirmed is None else [METHODS[0] if one else METHODS[1] for one in confirmed.tolist()]
    values = {"rank": fields["ranks"], count: fields["counts"], sigma: fields["sigmas"], "method": methods}
    columns = list(export.item_columns(fields["items"], fields["item_type"]))
    columns += [(name, cells, kinds[name]) for name, cells in values.items() if cells is not None]
    columns += [column for one in fields["aggregates"] for column in one.columns]
    if export.digest(columns) != certificate["digest"]:
        raise Damaged(
            "its rows are not those of its certificate: another program changed one of them. Restore the files that "
            "were written together"
        )


def _number_names(header: untrusted.Fields, summed: Summed | None) -> tuple[str, str]:
    """Return the names of the columns of counts or sums, and of their sigmas."""
    return NUMBERS if summed is None or not _has_own_unit(header, summed) else summed.columns


def _fields(header: untrusted.Fields, cells: CellsByColumn, form: str) -> untrusted.Fields:
    """Return the fields of a release from a header and cells, all of them checked."""
    missing = [name for name in ("made_by", "rho", "delta", "item_type", "seeded", "clipped") if name not in header]
    if missing:
        raise Damaged(f"its header lacks {', '.join(missing)}. A version before 0.1 may have written it; write it anew")
    kind, names = header["item_type"], header.get("columns")
    own = [("item", kind)] if isinstance(kind, str) else [(_name(name), kind) for name, kind in _list(kind)]
    try:
        more = {name: kind for one in read_aggregates(header, {}) for name, _, kind in one.columns}
        summed = summed_of(header)
    except ValueError as fault:
        raise Damaged(f"in its header, {fault}") from None
    numbers = _number_names(header, summed)
    more |= {} if numbers == NUMBERS else {numbers[0]: "sum", numbers[1]: "float64"}
    measures = [[*numbers]] if numbers != NUMBERS else [[*NUMBERS, *more]] if more else _MEASURES
    expected = [[name for name, _ in own] + numbers for numbers in measures]
    if not cells and names in expected:
        cells = _empty(names)
    if not own or [*cells] not in expected or names not in (None, [*cells]) or len({*map(len, cells.values())}) != 1:
        raise Damaged("it does not have the columns of a release")
    if isinstance(kind, str):
        kind = _one_of(header, "item_type", _TYPES)
    elif any(one not in (*_TYPES, *_TEXTS) for _, one in own):
        raise Damaged("item_type in its header has an unknown type")
    cells = converted(cells, form, dict(own), more)
    guarantee = _guarantee(header)
    spent = guarantee
    if "spent_rho" in header:
        spent = Guarantee(header["spent_rho"], header["spent_delta"], guarantee.unit, None, guarantee.neighbours)
    try:
        l0, kept_share = l0_and_share(header)
        provenance = Provenance.read(header["provenance"]) if "provenance" in header else None
        aggregates = read_aggregates(header, cells)
    except ValueError as fault:
        raise Damaged(f"in its header, {fault}") from None
    has_counts, ranks = numbers[0] in cells, cells.get("rank")
    found = facts_of(_text(header["made_by"]), l0, summed)
    if kept_share is not None and (found is None or "kept_share" not in found.claims):
        raise Damaged("its header has a kept_share, which its mechanism does not measure")
    facts = _facts(header, found, summed, l0, has_counts=has_counts)
    return {
        **facts,
        "items": _items([_typed(cells[name], one) for name, one in own]),
        "counts": (_whole if numbers == NUMBERS else _sums)(cells[numbers[0]]) if has_counts else None,
        "sigmas": _sigmas(cells[numbers[1]], 1e18 if numbers == NUMBERS else 1e50) if has_counts else None,
        "confirmed": _confirmed(cells["method"]) if "method" in cells and "method" not in dict(own) else None,
        "ranked": ranks is not None,
        "ranks": None if ranks is None else _ranks(ranks),
        "item_type": kind if isinstance(kind, str) else tuple(own),
        "guarantee": guarantee,
        "spent": guarantee if (spent.rho, spent.delta) == (guarantee.rho, guarantee.delta) else spent,
        "made_by": _text(header["made_by"]),
        "version": _text(header["version"]),
        "seeded": _flag(header, "seeded"),
        "kept_share": kept_share,
        "stopped_early": _flag(header, "stopped_early"),
        "calls": _number(header["calls"]),
        "round": None if header.get("round") is None else _number(header["round"]),
        "every": _every(header, own),
        "above": None if header.get("above") is None else _number(header["above"]),
        "users": _users(header.get("users")),
        "notes": (*map(_text, _list(header["notes"])), *facts["notes"]),
        "provenance": provenance,
        "aggregates": aggregates,
        "part_of": None if header.get("part_of") is None else _number(header["part_of"]),
    }


def _facts(
    header: untrusted.Fields, found: Facts | None, summed: Summed | None, l0: int | None, *, has_counts: bool
) -> untrusted.Fields:
    """Return what the numbers and items are, as the mechanism implies it. A header that says otherwise is damaged."""
    noise, kinds = _one_of(header, "noise", LAWS), KINDS
    if found is not None:
        kinds = (found.kind, "events") if found.may_count_events else (found.kind,)
    kind = _one_of(header, "kind", KINDS) if "kind" in header else "users" if found is None else kinds[0]
    listed = header.get("listed", "none" if found is None else found.listed)
    if kind not in kinds:
        raise Damaged("kind in its header is not what its mechanism counts")
    if found is not None and listed != found.listed:
        raise Damaged("listed in its header is not what its mechanism publishes")
    if found is not None and found.law != noise:
        raise Damaged("noise in its header is not the noise of its mechanism")
    clipped, notes = _flag(header, "clipped"), list[str]()
    if not clipped and l0 is not None:
        raise Damaged("its header has l0, and says that no counts are clipped")
    if has_counts and not clipped and (found is None or found.bounds_items):
        clipped, notes = True, [_UNSHOWN]
    return {
        "clipped": clipped,
        "l0": l0,
        "most": None if header.get("most") is None else _number(header["most"]),
        "kind": kind,
        "listed": _one_of({"listed": listed}, "listed", LISTED),
        "summed": None if summed is None else summed._replace(column=summed.column and _text(summed.column)),
        "noise": noise,
        "notes": notes,
    }


def _guarantee(header: untrusted.Fields) -> Guarantee:
    try:
        pair = (header["epsilon"], header["total_delta"]) if "epsilon" in header else None
        return Guarantee(header["rho"], header["delta"], header["unit"], pair, header["neighbours"])
    except (ParameterError, KeyError):
        raise Damaged("its header has no valid guarantee") from None


def _items(columns: list[Cells]) -> Cells:
    """Return the items of one column, or the tuples of several: all distinct."""
    items = columns[0] if len(columns) == 1 else list(zip(*columns, strict=True))
    if len({*items}) != len(items):
        raise Damaged("it has an item twice")
    return items


def _typed(cells: Cells, kind: str) -> Cells:
    """Return the cells of a column of items, all of the type that the header names."""
    expected = int if kind in RANGES else bytes if kind == "binary" else str
    if any(type(cell) is not expected for cell in cells):
        raise Damaged(f"its items are not of the type {kind}")
    if expected is int and cells and not RANGES[kind][0] <= min(cells) <= max(cells) <= RANGES[kind][1]:
        raise Damaged(f"its items are not of the type {kind}")
    if expected is str:
        "\n".join(cells).encode()  # a lone surrogate is a ValueError
    if kind in _TEXTS:
        for cell in cells:
            _require_typed(cell, kind)
    return cells


def _require_typed(cell: str, kind: str) -> None:
    """Raise ValueError if a text is no date, time or boolean as releases write it."""
    if kind == "bool":
        is_typed = cell in ("false", "true")
    elif kind == "date":
        is_typed = date.fromisoformat(cell).isoformat() == cell
    else:
        is_nanos, zone = kind.startswith("timestamp[ns"), "Z" if kind.endswith("UTC]") else ""
        found = re.fullmatch(_TIME[is_nanos] + zone, cell, re.ASCII)
        is_typed = found is not None and bool(date.fromisoformat(cell[:10]))
        is_typed &= not is_nanos or _NANOS[0] <= cell.removesuffix("Z") <= _NANOS[1]
    if not is_typed:
        raise Damaged(f"its items are not of the type {kind}")


def _whole(cells: Cells) -> NDArray[np.int64]:
    if any(type(cell) is not int or not -_MOST < cell < _MOST for cell in cells):
        raise Damaged("its counts or ranks are not whole numbers below 2^62")
    return np.array(cells, np.int64)


def _sums(cells: Cells) -> export.Numbers:
    """Return sums as integers, or as floats if one of them is a float."""
    if all(type(cell) is int for cell in cells):
        return _whole(cells)
    sums = np.array(cells, np.float64)
    if any(type(cell) is not float for cell in cells) or not np.all(np.abs(sums) < 1e50):
        raise Damaged("its sums are not numbers of one type")
    return sums


def _ranks(cells: Cells) -> NDArray[np.int64]:
    ranks = _whole(cells)
    if np.any(ranks < 1) or len(np.unique(ranks)) != len(ranks):
        raise Damaged("its ranks are not distinct numbers from 1")
    return ranks


def _sigmas(cells: Cells, most: float) -> NDArray[np.float64]:
    if any(type(cell) not in (int, float) for cell in cells):
        raise Damaged("its sigmas are not numbers")
    sigmas = np.array(cells, np.float64)
    if not np.all((sigmas >= 0) & (sigmas < most)):
        raise Damaged("its sigmas are not positive numbers")
    return sigmas


def _confirmed(cells: Cells) -> NDArray[np.bool_]:
    if any(cell not in METHODS for cell in cells):
        raise Damaged(f"its methods are not {' or '.join(METHODS)}")
    return np.array([cell == METHODS[0] for cell in cells], np.bool_)


def _text(value: object) -> str:
    """Return a text of a header without control characters, which could change a terminal."""
    if not isinstance(value, str) or len(value) > _LONGEST:
        raise Damaged("its header has an invalid text")
    return export.plain_text(value)


def _name(value: object) -> str:
    if not isinstance(value, str) or value in ("rank", *NUMBERS):
        raise Damaged("its header has an invalid name of a column")
    return value


def _list(value: object) -> Cells:
    if not isinstance(value, list) or len(value) > 1000:
        raise Damaged("its header has an invalid list")
    return value


def _flag(header: untrusted.Fields, name: str) -> bool:
    value = header[name]
    if not isinstance(value, bool):
        raise Damaged(f"{name} in its header is neither true nor false")
    return value


def _number(value: object) -> int:
    if type(value) is not int or not 0 <= value < _MOST:
        raise Damaged("its header has an invalid number")
    return value


def _every(header: untrusted.Fields, own: list[tuple[str, str]]) -> str | None:
    """Return the length of the periods, which are in the first of several columns of items."""
    if header.get("every") is None:
        return None
    if len(own) < 2 or own[0][1] not in ("date", "timestamp[us]"):
        raise Damaged("its header has every, but its items have no column of periods")
    return _one_of(header, "every", EVERY)


def _one_of(header: untrusted.Fields, name: str, values: Iterable[_Choice]) -> _Choice:
    for value in values:
        if header[name] == value:
            return value
    raise Damaged(f"{name} in its header is none of {', '.join(values)}")


def _users(value: object) -> tuple[int, float] | None:
    if value is None:
        return None
    number, sigma = _list(value)
    if type(number) is not int or type(sigma) not in (int, float) or not (abs(number) < _MOST and 0 <= sigma < 1e18):
        raise Damaged("users in its header are not a number and its sigma")
    return number, float(sigma)
