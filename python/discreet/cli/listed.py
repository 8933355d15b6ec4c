"""The plan of a count of public items."""

from __future__ import annotations

import json

from discreet.cli.known import known_items
from discreet.mechanisms.counts.given_counts import GivenCounts
from discreet.mechanisms.fewest import users_for
from discreet.mechanisms.parameters import RELATIVE_ERROR
from discreet.mechanisms.wrappers.counts_with_public_items import CountsWithPublicItems
from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.planning.choose import Parameters, choose, stated
from discreet.planning.public_items import public_and_other_counts, public_counts
from discreet.releasing import known, require_known, required
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
    l0, others_need, another = parameters.get("l0"), list[int](), list[str]()
    listed = require_known(known_items(path, ("item",)), others=others, l0=l0, mechanism=None)
    assert listed is not None
    rho, epsilon, delta = parameters.get("rho"), parameters.get("epsilon"), parameters.get("delta")
    mechanism: KnownItems | GivenCounts | CountsWithPublicItems
    if others and l0 is None:
        accuracy = parameters.get("relative_error", RELATIVE_ERROR)
        mechanism, reasons = public_and_other_counts(
            listed, rho=rho, epsilon=epsilon, delta=required(delta), relative_error=accuracy
        )
        counting: KnownItems | GivenCounts = mechanism.public
        title = f"CountsWithPublicItems of {counted(len(listed), 'item')}"
        another = [f"other items: CalibratedCounts with rho {mechanism.others.rho:.4g} and delta {mechanism.delta:g}"]
    elif others:
        found, reasons = choose("count", **parameters)
        mechanism = counting = known(found, listed)
        others_need = [users_for(counting, chance) for chance in (0.5, 0.95)]
        another = [
            "another item needs {} for a 50 % chance, {:,} for 95 %".format(
                counted(others_need[0], "user"), others_need[1]
            )
        ]
        title = f"KnownItems of {counted(len(listed), 'item')}, with {counting.mechanism!r}"
    else:
        mechanism, reasons = public_counts(listed, rho=rho, epsilon=epsilon, delta=delta, l0=l0)
        counting = mechanism
        title = f"{type(mechanism).__name__} of {counted(len(listed), 'item')}"
    guarantee = stated(mechanism, epsilon, delta)
    if as_json:
        content: dict[str, object] = {
            "mechanism": repr(mechanism),
            "rho": guarantee.rho,
            "delta": guarantee.delta,
            "unit": guarantee.unit,
            "dp": guarantee.dp,
            "deviation": counting.deviation,
            "items": len(listed),
            **dict(zip(("users_for_50_percent", "users_for_95_percent"), others_need, strict=False)),
            "reasons": list(reasons),
        }
        return json.dumps(content, indent=1)
    lines = [
        title,
        f"guarantee: {guarantee.promise}",
        f"noise of standard deviation {counting.deviation:.4g} on every count of a listed item",
        "every item of the file is released, whatever its number of users: there is no threshold",
    ]
    return "\n".join([*lines, *another, *reasons])
