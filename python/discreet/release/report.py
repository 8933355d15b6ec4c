"""A report of a release: one HTML file with the table, a picture and the guarantee in words.

The page has no scripts and loads nothing. A policy in its head forbids both, in case a label escapes its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

from discreet.privacy.conversion import round_up
from discreet.privacy.guarantee import UNITS, Guarantee
from discreet.release import export
from discreet.release.facts import Listed, Summed
from discreet.release.markup import escaped, paragraph
from discreet.release.provenance import Provenance
from discreet.wording import counted, number, shown_up

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from discreet.release.aggregates import Aggregate

__all__ = ["ROWS", "STYLE", "page"]

ROWS = 1000
"""The most rows in the table of a report."""
_BARS = 30
"""The most bars in the picture."""
_LABEL = 120
"""The most characters of a label in the table."""
_BAR_LABEL = 40
"""The most characters of a label in the picture. A label that is still too wide is covered by its count."""
_CONFIDENCE = 0.95

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; color: #1c2733;
  background: #fff; margin: 0 auto; padding: 24px 16px 48px; max-width: 880px; overflow-wrap: anywhere; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 8px; }
h2 { font-size: 19px; margin: 32px 0 8px; border-bottom: 1px solid #d5dbe1; padding-bottom: 4px; }
p { margin: 8px 0; }
.lead { color: #44525f; margin: 0; }
.notice { background: #fff4d6; border-left: 4px solid #d99a00; padding: 8px 12px; margin: 16px 0; }
.box { background: #eef3f9; border-left: 4px solid #3d6ea8; padding: 8px 12px; margin: 12px 0; }
table { border-collapse: collapse; width: 100%; font-size: 15px; }
th { text-align: left; font-weight: 600; border-bottom: 2px solid #9aa7b3; padding: 4px 8px; }
td { border-bottom: 1px solid #e3e8ed; padding: 4px 8px; vertical-align: top; }
.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 16px; margin: 8px 0; }
dt { color: #44525f; }
dd { margin: 0; }
svg { display: block; width: 100%; overflow: hidden; }
svg text { font-size: 13px; fill: #1c2733; }
svg .value { fill: #44525f; text-anchor: end; paint-order: stroke; stroke: #fff; stroke-width: 8px;
  stroke-linejoin: round; }
svg .track { fill: #eef1f4; }
svg .bar { fill: #7f9fc9; }
svg .error { stroke: #16202a; stroke-width: 1.5; }
@media (max-width: 560px) {
  h1 { font-size: 22px; }
  body { font-size: 15px; padding-top: 16px; }
  table { font-size: 13px; }
  th, td { padding: 4px; }
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 8px; }
}
"""


class Reported(Protocol):
    """The parts of a Release that a report shows."""

    @property
    def items(self) -> list[Any]:
        """The items."""

    @property
    def item_names(self) -> tuple[str, ...]:
        """The names of the columns of items."""

    @property
    def counts(self) -> export.Numbers | None:
        """The noisy counts."""

    @property
    def sigmas(self) -> NDArray[np.float64] | None:
        """The standard deviations of their noise."""

    @property
    def methods(self) -> list[str]:
        """How each count was found; empty for a release of one method."""

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """Further numbers of each item."""

    @property
    def ranked(self) -> bool:
        """Whether the rows are ranks."""

    @property
    def clipped(self) -> bool:
        """Whether the counts are clipped."""

    @property
    def seeded(self) -> bool:
        """Whether the randomness was seeded."""

    @property
    def claimed(self) -> bool:
        """Whether the guarantee is a claim."""

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee."""

    @property
    def promise(self) -> str:
        """The guarantee in one line."""

    @property
    def measure(self) -> str:
        """The meaning of the counts."""

    @property
    def quantity(self) -> Literal["count", "sum"]:
        """The meaning of a number."""

    @property
    def listed(self) -> Listed:
        """Which items are published even if nobody has them."""

    @property
    def summed(self) -> Summed | None:
        """The values of sums."""

    @property
    def made_by(self) -> str:
        """The mechanism and its parameters."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes."""

    @property
    def provenance(self) -> Provenance | None:
        """The origin and the title of the release."""

    @property
    def digest(self) -> str:
        """The SHA-256 of the rows."""

    @property
    def users(self) -> tuple[int, float] | None:
        """The noisy number of users."""

    @property
    def version(self) -> str:
        """The version of discreet."""

    def head(self, n: int = 10) -> Self:
        """Return the first rows."""

    def to_dict(self) -> dict[Any, float]:
        """Return the count or rank of each item."""

    def interval(self, confidence: float = 0.95) -> dict[str, NDArray[np.int64]]:
        """Return the intervals of the true counts."""

    def __len__(self) -> int: ...


def page(release: Reported, title: str = "") -> str:
    """Return the report of a release as a page of HTML. By default its title is the number of its items."""
    shown = release.head(ROWS)
    about = dict(release.provenance or ())
    size = _title(release)
    title = title or about.get("label", size)
    lead = [release.promise] if title == size else [size, release.promise]
    body = [
        f"<h1>{escaped(title)}</h1>",
        *(f'<p class="lead">{escaped(text)}</p>' for text in lead),
        *(f'<p class="notice">{escaped(text)}</p>' for text in _warnings(release)),
        _picture(shown),
        f"<h2>Table</h2>{_table(shown, len(release))}",
        f"<h2>Guarantee</h2>{_in_words(release)}",
        f"<h2>How to read it</h2>{''.join(map(paragraph, _reading(release)))}",
        f"<h2>Parameters</h2>{_parameters(release)}",
    ]
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escaped(_POLICY)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escaped(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n{chr(10).join(body)}\n</body>\n</html>\n"
    )


def _title(release: Reported) -> str:
    """Return the title of a report."""
    size = counted(len(release), "item")
    if release.quantity == "sum":
        return f"{_sentence('sums of values' if release.summed is None else release.summed.title)}, for {size}"
    return f"{size}: {release.measure}" if release.counts is not None else f"{size} by rank" if release.ranked else size


def _sentence(text: str) -> str:
    """Return a text with a capital at its beginning."""
    return f"{text[:1].upper()}{text[1:]}"


def _warnings(release: Reported) -> list[str]:
    """Return the notes that a reader must not miss."""
    found = []
    if release.seeded:
        found.append("No privacy: the randomness was seeded. Do not publish these rows.")
    if release.claimed:
        found.append("These rows were read from a file. The guarantee is what the file claims; nothing verifies it.")
    if release.clipped and release.counts is not None:
        if release.quantity == "sum":
            unit = release.guarantee.unit
            bounds = release.measure if release.summed is None else release.summed.bounds_of(unit)
            found.append(f"{_sentence(bounds)}. A true sum may be far higher or lower.")
        else:
            found.append(f"{_sentence(release.measure)}. A true count may be far higher.")
    return found


def _picture(shown: Reported) -> str:
    """Return the largest counts as bars with intervals, in a picture that is as wide as the page.

    Positions are in percent and letters in pixels, so letters keep their size on a narrow screen.
    """
    if shown.counts is None or shown.sigmas is None or not len(shown.items):
        return ""
    top = shown.head(_BARS)
    assert top.counts is not None
    assert top.sigmas is not None
    if top.clipped:
        reach = 2 * top.sigmas
        ends = {"low": top.counts - reach, "high": top.counts + reach}
        what = "The line on a bar is two sigma to both sides. It does not include what the bound clipped."
    else:
        ends = {name: bound.astype(float) for name, bound in top.interval(_CONFIDENCE).items()}
        what = f"The line on a bar is the {_CONFIDENCE:.0%} interval of the true count."
    scale = max(float(ends["high"].max()), 1.0 if top.quantity == "count" else 1e-300) * 1.02
    rows = zip(top.items, top.counts.tolist(), ends["low"].tolist(), ends["high"].tolist(), strict=True)
    parts = []
    for place, (item, count, low, high) in enumerate(rows):
        y = 42 * place
        left, right, width = (f"{100 * min(max(end / scale, 0), 1):.2f}%" for end in (low, high, count))
        parts.append(
            f'<text x="0" y="{y + 14}"><tspan>{escaped(export.shortened(item, _BAR_LABEL))}</tspan></text>'
            f'<text class="value" x="100%" y="{y + 14}">{number(count)}</text>'
            f'<rect class="track" x="0" y="{y + 20}" width="100%" height="12"/>'
            f'<rect class="bar" x="0" y="{y + 20}" width="{width}" height="12"/>'
            f'<line class="error" x1="{left}" x2="{right}" y1="{y + 26}" y2="{y + 26}"/>'
            + "".join(f'<line class="error" x1="{x}" x2="{x}" y1="{y + 22}" y2="{y + 30}"/>' for x in (left, right))
        )
    height = 42 * len(parts)
    return (
        f"<h2>The {'largest ' if len(shown.items) > _BARS else ''}{shown.quantity}s</h2>{paragraph(what)}"
        f'<svg height="{height}" role="img" aria-label="bars of the largest {shown.quantity}s">{"".join(parts)}</svg>'
    )


def _table(shown: Reported, total: int) -> str:
    """Return the first rows of a release as a table."""
    columns: list[tuple[str, Sequence[str]]] = []
    if shown.ranked:
        columns.append(("rank", [f"{rank:,}" for rank in shown.to_dict().values()]))
    if shown.counts is not None and shown.sigmas is not None:
        columns.append((shown.quantity, [number(count) for count in shown.counts.tolist()]))
        digits = ",.1f" if shown.quantity == "count" else ",.6g"
        columns.append(("sigma", [f"{sigma:{digits}}" for sigma in shown.sigmas.tolist()]))
        if shown.methods:
            columns.append(("method", shown.methods))
        if not shown.clipped:
            ends = shown.interval(_CONFIDENCE)
            bounds = zip(ends["low"].tolist(), ends["high"].tolist(), strict=True)
            columns.append((f"{_CONFIDENCE:.0%} interval", [f"{low:,} – {high:,}" for low, high in bounds]))
    for name, cells, kind in (column for one in shown.aggregates for column in one.columns):
        own = cells.tolist()  # type: ignore[union-attr]
        texts = [f"{cell:,}" if kind == "int64" else f"{cell:,.6g}" for cell in own]
        columns.append((export.shortened(name, _LABEL), texts))
    names = "".join(f"<th>{escaped(export.shortened(name, _LABEL))}</th>" for name in shown.item_names)
    head = names + "".join(f'<th class="number">{escaped(name)}</th>' for name, _ in columns)
    rows = []
    for place, item in enumerate(shown.items):
        cells = "".join(f'<td class="number">{escaped(cells[place])}</td>' for _, cells in columns)
        parts = item if len(shown.item_names) > 1 else (item,)
        labels = "".join(f"<td><bdi>{escaped(export.shortened(part, _LABEL))}</bdi></td>" for part in parts)
        rows.append(f"<tr>{labels}{cells}</tr>")
    rest = total - len(shown.items)
    more = f"and {rest:,} more, which the files of rows (.csv, .parquet) have" if rest else ""
    body = "\n".join(rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table>{paragraph(more) if more else ''}"


def _in_words(release: Reported) -> str:
    """Return the guarantee in words."""
    if release.seeded:
        return paragraph("These rows have no guarantee, because the randomness was seeded.")
    guarantee = release.guarantee
    unit, (epsilon, delta) = guarantee.unit, guarantee.quoted
    change = "is added to the data or removed from it" if guarantee.neighbours == "added" else "is replaced by another"
    single: str = unit
    person = "one user, with all rows of that user," if unit == "user" else "one event"
    if (period := unit.removeprefix("user-")) not in ("user", "event"):
        single = f"{period} of a user: all rows of one user in one {period} in UTC"
        person = f"one user in one {period}, with all rows of that user in that {period},"
    claims = "The file that the rows were read from claims that they are" if release.claimed else "The rows are"
    texts = [f"{claims} differentially private: the guarantee limits what they reveal about any single {single}."]
    if single != unit:
        texts.append(f"It does not limit as much what they reveal about a user who has rows in many {period}s.")
    if math.isfinite(epsilon):
        texts.append(
            f"In numbers: if {person} {change}, the probability of every possible outcome changes by at most a factor "
            f"of {_factor(epsilon)} (e^epsilon with epsilon = {shown_up(epsilon, 4)}), apart from a probability of "
            f"delta = {shown_up(delta, 3)}. "
            "This holds whatever else a reader knows or computes."
        )
        if epsilon > 10:
            texts.append("This epsilon is large: the guarantee is weak.")
    texts.append(f"The exact statement: {guarantee}.")
    return f'<div class="box">{"".join(map(paragraph, texts))}</div>'


def _factor(epsilon: float) -> str:
    """Return e^epsilon as text, rounded up."""
    if epsilon > 700:  # too large for a float
        return f"e^{shown_up(epsilon, 4)}"
    size = Decimal(round_up(math.exp(epsilon)) if epsilon else 1)
    digits = Decimal("0.01") if size < 100 else Decimal(1)
    return f"{size.quantize(digits, ROUND_CEILING):,}" if size < 10**12 else shown_up(float(size), 3)


def _reading(release: Reported) -> list[str]:
    """Return how to read the numbers."""
    texts, word = [], release.quantity
    if release.counts is not None:
        texts.append(
            f"Each {word} has random noise. Sigma is the standard deviation of this noise: about two of three {word}s "
            "are within one sigma of their value without noise, and about 95 of 100 within two."
        )
        if release.methods:
            texts[-1] = (
                "The column method says how a count was found. A confirmed count is the number of users with random "
                "noise. An estimated count follows from weighted counts of users with many items, with random noise, "
                f"and from measured medians. Sigma is the standard deviation of the error: about two of three {word}s "
                "are within one sigma of the true number, and about 95 of 100 within two. Items that only users with "
                "many items have can be estimated too low."
            )
        if release.clipped:
            texts.append(
                f"A bound limits what each user contributes, so that the noise can be small. The {word}s are those of "
                f"the clipped data. The true {word}s may be higher{' or lower' if word == 'sum' else ''}, by an amount "
                "that sigma does not include."
            )
        else:
            texts.append(
                f"The {_CONFIDENCE:.0%} interval contains the true count for about {100 * _CONFIDENCE:.0f} of 100 "
                "counts. Counts that differ by less than their intervals may be in the wrong order."
            )
    elif release.ranked:
        texts.append(
            "The rows are ranks, drawn with random noise: items with similar counts may be in the wrong order."
        )
    else:
        texts.append("The rows are names alone, in the order of the names.")
    if release.listed != "none" and release.counts is not None:
        small = "" if word == "sum" else " A negative count is a small count."
        texts.append(f"All listed items are published, even items that nobody has.{small}")
    if release.listed != "all":
        other, others = ("Another", "Other items") if release.listed == "some" else ("An", "Items")
        texts.append(
            f"{other} item that is missing is not necessarily absent from the data. {others} of few users are left "
            "out, because their names could reveal a user. The file has no trace of them."
        )
    return texts


def _parameters(release: Reported) -> str:
    """Return the mechanism, its parameters and the notes as a list of terms."""
    guarantee = release.guarantee
    pairs = [
        ("made by", export.shown_call(release.made_by)),
        ("rho", shown_up(guarantee.rho)),
        ("delta", shown_up(guarantee.delta)),
    ]
    if guarantee.dp is not None:
        pairs.append(("(epsilon, delta)", "({}, {})".format(*map(shown_up, guarantee.dp))))
    changed = "added or removed" if guarantee.neighbours == "added" else "replaced"
    pairs.append(("protects", f"one {UNITS[guarantee.unit]}, {changed}"))
    if release.users is not None:
        name = f"{guarantee.unit}s {'of the listed items' if release.listed == 'all' else 'in the data'}"
        pairs.append((name, "{:,} (sigma {:,.1f})".format(*release.users)))
    pairs += [*(release.provenance or ()), ("SHA-256 of the rows", release.digest)]
    pairs += [("note", note) for note in release.notes]
    pairs.append(("software", f"discreet {release.version}"))
    return "<dl>" + "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(value)}</dd>" for name, value in pairs) + "</dl>"
