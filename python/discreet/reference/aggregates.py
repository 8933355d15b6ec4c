"""Numbers of users and rows, sums and means over one choice of each user's items."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from discreet.reference.clipped_sums import rounded

__all__ = ["aggregates"]


def aggregates(
    rows: Iterable[tuple[int, int, int | None]],
    items: Iterable[int],
    l0: int,
    measures: Sequence[tuple[str, int, int, int, int, int]],
    place: Callable[[int, int], int],
    luck: Callable[[int, int], int] = lambda _user, _item: 0,
) -> dict[int, list[int]]:
    """Return for each of `items` what each measure adds up: one number, and two for a mean.

    Args:
        rows: Users, items and values in steps; None is a row without a value.
        items: The items to measure, among all items that users have.
        l0: The most items of a user: those whose `place` comes first.
        measures: "rows", "sum" or "mean", its least and largest value in steps, the most rows of a user for an item,
            the parts of a step in which a mean is added up, and the power of two of steps in which values are.
        place: The random place of an item in the order of a user.
        luck: A random number below 2^32 for a user and an item. It rounds a mean to whole parts, without bias.
    """
    pairs: dict[int, dict[int, list[int | None]]] = {}
    for user, item, value in rows:
        pairs.setdefault(user, {}).setdefault(item, []).append(value)
    found = {item: [0] * sum(1 + (kind == "mean") for kind, *_ in measures) for item in items}
    for user, own in pairs.items():
        for item in sorted(own, key=lambda item, user=user: place(user, item))[:l0]:  # type: ignore[misc]
            if item in found:
                more = [part for measure in measures for part in _added(own[item], luck(user, item), *measure)]
                found[item] = [total + part for total, part in zip(found[item], more, strict=True)]
    return found


def _added(
    values: Sequence[int | None], luck: int, kind: str, low: int, high: int, most: int, parts: int, shift: int
) -> list[int]:
    """Return what the rows of one user for one item add to a measure."""
    if kind == "rows":
        return [min(len(values), most)]
    own = [value for value in values if value is not None]
    if not own:
        return [0] if kind == "sum" else [0, 0]
    if kind == "sum":
        return [rounded(min(max(sum(own), low), high), shift)]
    weight, size, centre = min(len(own), most), len(own), (low + high) // 2
    total = min(max(sum(own), low * size), high * size) - centre * size
    return [rounded((total * weight * parts + size * luck // 2**32) // size, shift), weight]
