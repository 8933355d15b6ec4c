"""The plan of a count of public items."""

from __future__ import annotations

import json

from discreet.cli.known import known_items
from discreet.mechanisms.counts.given_counts import GivenCounts
from discreet.mechanisms.fewest import users_for
from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.planning.choose import Parameters, choose, stated
from discreet.planning.public_items import public_counts
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
    l0, others_need = parameters.get("l0"), list[int]()
    listed = require_known(known_items(path, ("item",)), others=others, l0=l0, mechanism=None)
    assert listed is not None
    rho, epsilon, delta = parameters.get("rho"), parameters.get("epsilon"), parameters.get("delta")
    mechanism: KnownItems | GivenCounts
    if others:
        found, reasons = choose("count", **parameters)
        mechanism = known(found, listed)
        others_need = [users_for(mechanism, chance) for chance in (0.5, 0.95)]
        title = f"KnownItems of {counted(len(listed), 'item')}, with {mechanism.mechanism!r}"
    else:
        mechanism, reasons = public_counts(listed, rho=rho, epsilon=epsilon, delta=delta, l0=l0)
        title = f"{type(mechanism).__name__} of {counted(len(listed), 'item')}"
    guarantee = stated(mechanism, epsilon, delta)
    if as_json:
        content: dict[str, object] = {
            "mechanism": repr(mechanism),
            "rho": guarantee.rho,
            "delta": guarantee.delta,
            "unit": guarantee.unit,
            "dp": guarantee.dp,
            "deviation": mechanism.deviation,
            "items": len(listed),
            **dict(zip(("users_for_50_percent", "users_for_95_percent"), others_need, strict=False)),
            "reasons": list(reasons),
        }
        return json.dumps(content, indent=1)
    lines = [
        title,
        f"guarantee: {guarantee.promise}",
        f"noise of standard deviation {mechanism.deviation:.4g} on every count",
        "every item of the file is released, whatever its number of users: there is no threshold",
    ]
    if others_need:
        needed, nearly = others_need
        lines.append(f"another item needs {counted(needed, 'user')} for a 50 % chance, {nearly:,} for 95 %")
    return "\n".join([*lines, *reasons])
