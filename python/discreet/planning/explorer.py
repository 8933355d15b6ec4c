"""A page of sliders: one HTML file that shows how many items a count names, for any parameters and shapes of data.

The page has one script and loads nothing. A policy in its head allows this script only."""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING

from discreet.planning.explorer_script import SCRIPT, STYLE
from discreet.planning.grid import SHAPE, around, grid, inside
from discreet.planning.shape import DEFAULT, Shape
from discreet.release import report
from discreet.release.markup import escaped, paragraph

if TYPE_CHECKING:
    from discreet.planning.comparison import Outlook, PlanComparison
    from discreet.planning.plan import Plan

__all__ = ["explorer"]

_TEXTS = {
    "rho": "rho, the privacy cost",
    "delta": "delta",
    "l0": "l0 of the threshold",
    "users": "users",
    "items": "different items",
    "exponent": "exponent of Zipf's law",
    "items_per_user": "items per user (mean)",
}
_CURVES = (("one", "confirmed counts"), ("two", "threshold"))


def explorer(plan: Plan, *, shape: Shape = DEFAULT, l0: int | None = None, relative_error: float = 0.1) -> str:
    """Return a page with sliders and curves, which begins with the parameters of a plan.

    Args:
        plan: A plan of counts.
        shape: The shape that the sliders begin with.
        l0: The bound that the slider begins with; by default that of the best threshold of the comparison.
        relative_error: The error that counts as close, as a fraction of a count.

    Returns:
        One page of HTML, about 530 kB. It needs no network.
    """
    given = {"rho": plan.guarantee.rho, "delta": plan.guarantee.delta, "l0": l0 or _best_bound(plan.comparison)}
    given |= {name: getattr(shape, name) for name in SHAPE}
    start = {name: inside(name, value) for name, value in given.items()}
    near = around({name: start[name] for name in SHAPE}, start, relative_error)
    data = json.dumps(grid(relative_error) | {"start": near}, separators=(",", ":"))
    digest = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    percent = f"{100 * relative_error:.3g} %"
    body = [
        "<h1>Explore a count before it is made</h1>",
        paragraph("Forecasts on public shapes of data. This page has no data of yours and needs no network."),
        f'<div class="sliders">{"".join(_slider(name, start[name]) for name in _TEXTS)}</div>',
        '<p class="box" id="summary">The curves need JavaScript. The table below does not.</p>',
        '<div class="pictures">',
        _figure("named", "Items named, over rho", (("", "named"), (" faint", f"within {percent} of the true count"))),
        _figure(
            "noise",
            "Error of a count, in users",
            (("", "noise (sigma)"), (" faint", "lost by clipping")),
            only={" faint": "two"},
        ),
        "</div>",
        f"<h2>Side by side</h2>{'' if plan.comparison is None else _table(plan.comparison)}",
        "<h2>How to read it</h2>",
        *map(paragraph, _reading(shape)),
        f"<h2>This plan</h2><dl>{''.join(_term(*pair) for pair in _terms(plan))}</dl>",
        f'<script type="application/json" id="grid">{data}</script>',
        f"<script>{SCRIPT}</script>",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escaped(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>Plan of a count</title>\n<style>{report.STYLE}{STYLE}</style>\n</head>\n<body>\n"
        f"{chr(10).join(body)}\n</body>\n</html>\n"
    )


def _best_bound(comparison: PlanComparison | None) -> int:
    """Return the l0 of the recommended threshold, or else of the best one; 10 if there is none."""
    thresholds = [row for row in (comparison.rows if comparison is not None else ()) if row.l0 is not None]
    best = max(thresholds, key=lambda row: row.score, default=None)
    return 10 if best is None or best.l0 is None else best.l0


def _slider(name: str, value: float) -> str:
    """Return a slider over an axis of the grid, with the value that it begins with."""
    return (
        f'<div><label for="{name}"><span>{escaped(_TEXTS[name])}</span>'
        f'<output id="{name}-value" for="{name}">{value:g}</output></label>'
        f'<input type="range" id="{name}" min="0" max="1000" data-value="{value!r}"></div>'
    )


def _figure(name: str, title: str, lines: tuple[tuple[str, str], ...], only: dict[str, str] | None = None) -> str:
    """Return an empty picture with its legend; the script draws the curves."""
    keys = [
        '<li><svg viewBox="0 0 30 10" aria-hidden="true">'
        f'<line class="key {kind}{style}" x1="0" x2="30" y1="5" y2="5"/></svg>'
        f"{escaped(f'{what}: {text}')}</li>"
        for kind, what in _CURVES
        for style, text in lines
        if (only or {}).get(style, kind) == kind
    ]
    return (
        f'<figure><figcaption>{escaped(title)}</figcaption><ul class="legend">{"".join(keys)}</ul>'
        f'<svg id="{name}" height="270" role="img" aria-label="{escaped(title)}"></svg></figure>'
    )


def _table(comparison: PlanComparison) -> str:
    """Return the comparison of the plan as a table."""
    percent = f"within {100 * comparison.relative_error:.3g} %"
    heads = ("items", "smallest count", percent, "sigma of largest", "of smallest", "lost by clipping")
    head = "".join(f'<th class="number">{escaped(name)}</th>' for name in heads)
    rows = "\n".join(
        f"<tr><td>{escaped(row.label)}{' <b>(recommended)</b>' if row.recommended else ''}</td>"
        + "".join(f'<td class="number">{escaped(cell)}</td>' for cell in _cells(row))
        + "</tr>"
        for row in comparison.rows
    )
    given = "the default shape" if comparison.is_default else "public data"
    return paragraph(f"On {given}: {comparison.like}. These figures are fixed; the sliders do not change them.") + (
        f'<div class="scroll"><table><thead><tr><th>mechanism</th>{head}</tr></thead>'
        f"<tbody>\n{rows}\n</tbody></table></div>"
    )


def _cells(row: Outlook) -> list[str]:
    numbers = [row.items, row.smallest, row.within, row.sigma_largest, row.sigma_smallest]
    shown = [
        "-" if number is None else f"{number:,.3g}" if isinstance(number, float) and number < 100 else f"{number:,.0f}"
        for number in numbers
    ]
    return [*shown, f"{100 * row.clipped_share:.0f} %"]


def _reading(shape: Shape) -> list[str]:
    texts = [
        "The curves show confirmed counts, a part of the calibrated counts that count uses without l0, which release "
        "more items: see the comparison. Confirmed counts let a user have any number of items. The noise grows with "
        "the count, so the relative error is about the same for all items.",
        "A threshold counts at most l0 items of each user. Its noise is the same for all items. The published counts "
        "lack what clipping loses, which may be far more than the noise.",
        "The popularity of the i-th most common item is proportional to i^-exponent. A few users have many items, most "
        "have few. Read the curves as forecasts: your data has its own shape.",
        "At the shape that the sliders begin with, the numbers are computed. The table runs the mechanisms instead, so "
        "large numbers differ from it by up to about 10 %.",
        "Far from this shape the numbers are interpolated. In a test at random places, 8 in 10 numbers of named items "
        "were from 25 % too low to 5 % too high. The number of a threshold's counts that are close to the truth is "
        "rough: 8 in 10 were from a third of the computed number to 5 % too high.",
    ]
    if (shape.cutoff, shape.spread) != (DEFAULT.cutoff, DEFAULT.spread):
        texts.append(
            f"The table uses the cutoff {shape.cutoff:g} and the spread {shape.spread:g} of the shape. The curves use "
            f"{DEFAULT.cutoff:g} and {DEFAULT.spread:g}, so they differ from it."
        )
    return texts


def _terms(plan: Plan) -> list[tuple[str, str]]:
    return [
        ("made by", plan.mechanism),
        ("guarantee", plan.guarantee.promise),
        *(("note", text) for text in plan.reasons),
    ]


def _term(name: str, value: str) -> str:
    return f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>"
