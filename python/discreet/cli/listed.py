"""The plan of a count of public items."""

from __future__ import annotations

import json

from discreet.cli.known import known_items
from discreet.cli.parsing import Given
from discreet.errors import ParameterError
from discreet.mechanisms.composed.counts_with_public_items import CountsWithPublicItems
from discreet.mechanisms.fewest import users_for
from discreet.mechanisms.parameters import K_BAR
from discreet.mechanisms.wrappers.known_items import KnownItems
from discreet.planning.choose import Parameters, stated
from discreet.planning.public_items import for_public_items
from discreet.releasing import require_known
from discreet.wording import counted

__all__ = ["planned"]


def planned(path: str, *, others: bool, as_json: bool, parameters: Parameters) -> str:
    """Return the plan of `discreet count --items FILE`, as text or JSON.

    Raises:
        ParameterError: A parameter is missing or out of range.
        InputError: The file cannot be read.
    """
    listed = require_known(known_items(path, ("item",)), others=others, l0=parameters.get("l0"), mechanism=None)
    assert listed is not None
    asked: Given = {**parameters}
    if asked.pop("k_bar", K_BAR) != K_BAR:
        raise ParameterError.about("{items} excludes {k_bar}: leave out either of them")
    mechanism, reasons = for_public_items(listed, others=others, **asked)
    title, others_need, another = f"{type(mechanism).__name__} of {counted(len(listed), 'item')}", list[int](), ""
    counting = mechanism.public if isinstance(mechanism, CountsWithPublicItems) else mechanism
    if isinstance(mechanism, CountsWithPublicItems):
        another = f"other items: CalibratedCounts with rho {mechanism.others.rho:.4g} and delta {mechanism.delta:g}"
    elif isinstance(mechanism, KnownItems):
        others_need = [users_for(mechanism, chance) for chance in (0.5, 0.95)]
        title += f", with {mechanism.mechanism!r}"
        least, most = others_need
        another = f"another item needs {counted(least, 'user')} for a 50 % chance, {most:,} for 95 %"
    guarantee = stated(mechanism, parameters.get("epsilon"), parameters.get("delta"))
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
    return "\n".join([*lines, *filter(None, [another]), *reasons])
