"""The plan of a count of public items."""

from __future__ import annotations

import json

from discreet.cli.known import known_items
from discreet.mechanisms.fewest import users_for
from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.planning.choose import Parameters, choose, stated
from discreet.releasing import known, require_known
from discreet.wording import counted

__all__ = ["planned"]


def planned(path: str, *, others: bool, as_json: bool, parameters: Parameters) -> str:
    """Return the plan of `discreet count --items FILE`, as text or JSON.

    Args:
        path: The file of public items.
        others: Whether other items are released too.
        as_json: Whether to return JSON.
        parameters: The other parameters of `count`.

    Raises:
        ParameterError: A parameter is missing or out of range.
        InputError: The file cannot be read.
    """
    l0 = parameters.get("l0")
    listed = require_known(known_items(path, ("item",)), others=others, l0=l0, mechanism=None)
    assert listed is not None
    bounded = parameters.copy()
    bounded["l0"] = len(listed) if l0 is None else l0
    found, notes = choose("count", **bounded)
    mechanism, reasons = known(found, listed, notes, others=others)
    assert isinstance(mechanism, KnownItems)
    guarantee = stated(mechanism, parameters.get("epsilon"), parameters.get("delta"))
    needed = [users_for(mechanism, chance) for chance in (0.5, 0.95)] if others else []
    if as_json:
        content: dict[str, object] = {
            "mechanism": repr(mechanism),
            "rho": guarantee.rho,
            "delta": guarantee.delta,
            "unit": guarantee.unit,
            "dp": guarantee.dp,
            "deviation": mechanism.deviation,
            "items": len(listed),
            **dict(zip(("users_for_50_percent", "users_for_95_percent"), needed, strict=False)),
            "reasons": list(reasons),
        }
        return json.dumps(content, indent=1)
    lines = [
        f"KnownItems of {counted(len(listed), 'item')}, with {mechanism.mechanism!r}",
        f"guarantee: {guarantee.promise}",
        f"noise of standard deviation {mechanism.deviation:.4g} on every count",
        "every item of the file is released, whatever its number of users: there is no threshold",
    ]
    if needed:
        lines.append(f"another item needs {counted(needed[0], 'user')} for a 50 % chance, {needed[1]:,} for 95 %")
    return "\n".join([*lines, *reasons])
