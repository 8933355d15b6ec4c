"""The claims of the figures of Rogers (2024): their numbers here, verdicts, and the conditions that verdicts state."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

PAPER = {"p95": (12981.5, 25900.6, 34703.3), "p99": (13119.9, 26129.8, 35023.8)}
"""Results of Plume without the cut at T on wikipedia, at rho 0.1, 0.5 and 1 (text of Figure 4)."""
OURS, P95, P99 = "private count release", "plume p95", "plume p99"


class Claim(NamedTuple):
    """A claim of the paper. `numbers` and `condition` take the qualities of all contestants, by table and rho."""

    text: str
    here: str
    numbers: Callable
    verdict: str
    condition: Callable


def items(found, table, name=OURS):
    """Return the items of a contestant at every rho."""
    return [row[name][0] for row in found[table].values()]


def off(found, table, name=OURS):
    """Return the percentage of a contestant's counts that are more than 10 % off, at every rho."""
    return [100 * row[name][1] for row in found[table].values()]


def ends(values):
    """Return the least and the largest value."""
    return [min(values), max(values)]


def larger(ours, others):
    """Return for every rho whether a value of ours exceeds the other one."""
    return [a > b for a, b in zip(ours, others, strict=True)]


def since(found, table, are):
    """Return the least rho from which on all of these are true; infinity if the last one is not."""
    first = next((place for place in range(len(are)) if all(are[place:])), None)
    return float("inf") if first is None else float([*found[table]][first])


def more(ours, others):
    """Return by how many percent the values of ours exceed the other ones."""
    return [100 * (a / b - 1) for a, b in zip(ours, others, strict=True)]


def plume_of_sample(found):
    """Return the items of Plume with a threshold on the sample of Reddit, at the better percentile."""
    return [max(pair) for pair in zip(*(items(found, "reddit sample", name) for name in (P95, P99)), strict=True)]


def plume_has_more(found):
    """Return for every rho whether Plume with a threshold returns more on wikipedia, at both percentiles."""
    ours = items(found, "wikipedia")
    return [all(both) for both in zip(*(larger(items(found, "wikipedia", n), ours) for n in (P95, P99)), strict=True)]


def won(found, table):
    """Return the percentiles and rhos at which Private Count Release returns more than Plume with a threshold."""
    cells = {name: larger(items(found, table), items(found, table, name)) for name in (P95, P99)}
    return [
        (name, float(rho)) for name, row in cells.items() for rho, more in zip(found[table], row, strict=True) if more
    ]


def at_p99(found, selection=""):
    """Return by how many percent Plume without the cut at T has more results on wikipedia at p99 than at p95."""
    return more(*(items(found, "wikipedia", f"{name}{selection}, all") for name in (P99, P95)))


def fewer_off(found):
    """Return for every rho whether Private Count Release has fewer wrong counts on movielens than Plume at p99."""
    return larger(off(found, "movielens", P99), off(found, "movielens"))


CLAIMS = [
    Claim(
        "Figure 1, finance: Plume returns many more results",
        "{:.1f} to {:.1f} times as many",
        lambda f: ends([a / b for a, b in zip(items(f, "finance", P95), items(f, "finance"), strict=True)]),
        "holds",
        lambda f: min(more(items(f, "finance", P95), items(f, "finance"))) > 300,
    ),
    Claim(
        "Figure 1: less than 10 % of the counts of Private Count Release are more than 10 % off",
        "at most {:.0f} %",
        lambda f: [max(off(f, "finance"))],
        "holds",
        lambda f: max(off(f, "finance")) < 10,
    ),
    Claim(
        "Figure 2, 341 users: Private Count Release returns more than Plume with a threshold",
        "{:.0f}, {:.0f}, {:.0f} against at most {:.0f}, {:.0f}, {:.0f}",
        lambda f: items(f, "reddit sample") + plume_of_sample(f),
        "holds",
        lambda f: all(larger(items(f, "reddit sample"), plume_of_sample(f))),
    ),
    Claim(
        "Figure 2: only 10 % of its counts are more than 10 % off",
        "{:.0f}, {:.0f}, {:.0f} % of {:.0f} to {:.0f} counts",
        lambda f: off(f, "reddit sample") + ends(items(f, "reddit sample")),
        "about",
        lambda f: min(off(f, "reddit sample")) > 10 and max(off(f, "reddit sample")) < 20,
    ),
    Claim(
        "Figure 3, reddit at p95: almost half of Plume's counts are off",
        "{:.0f} to {:.0f} %",
        lambda f: ends(off(f, "reddit", P95)),
        "holds, and more",
        lambda f: min(off(f, "reddit", P95)) > 50,
    ),
    Claim(
        "Figure 3 at p99: almost all of Plume's counts are within the target",
        "{:.0f} to {:.0f} % are off",
        lambda f: ends(off(f, "reddit", P99)),
        "about",
        lambda f: max(off(f, "reddit", P99)) < 20,
    ),
    Claim(
        "Figure 3 at p99 and rho 0.1: Private Count Release returns as many",
        "{:.0f} against {:.0f}",
        lambda f: [items(f, "reddit")[0], items(f, "reddit", P99)[0]],
        "holds",
        lambda f: items(f, "reddit")[0] >= items(f, "reddit", P99)[0],
    ),
    Claim(
        "Figure 4, wikipedia: Plume with a threshold returns more",
        "from rho {:g} on",
        lambda f: [since(f, "wikipedia", plume_has_more(f))],
        "holds from rho 0.5 on",
        lambda f: since(f, "wikipedia", plume_has_more(f)) == 0.5,
    ),
    Claim(
        "Figure 4 at p95: more than 10 % of Plume's counts are off",
        "{:.0f} to {:.0f} %; {:.0f} to {:.0f} % of all counts, without the cut at T",
        lambda f: ends(off(f, "wikipedia", P95)) + ends(off(f, "wikipedia", "plume p95, all")),
        "not seen with an eighth of the users",
        lambda f: max(off(f, "wikipedia", P95)) < 10 < min(off(f, "wikipedia", "plume p95, all")),
    ),
    Claim(
        "text of Figure 4: 12,981.5, 25,900.6 and 34,703.3 results without the cut at T at p95, and 13,119.9, 26,129.8 "
        "and 35,023.8 at p99",
        "{:.1f} to {:.1f} % more at p99 in the paper. Here {:.1f} to {:.1f} % more if a set union finds the items, and "
        "{:.1f} to {:.1f} % fewer if a threshold does",
        lambda f: [
            *ends(more(PAPER["p99"], PAPER["p95"])),
            *ends(at_p99(f, ", set union")),
            *ends([-change for change in at_p99(f)]),
        ],
        "the paper's Plume finds items with a set union",
        lambda f: max(at_p99(f)) < 0 < min(at_p99(f, ", set union")),
    ),
    Claim(
        "Figure 5, movielens: Private Count Release returns more than Plume at both percentiles",
        "only at p{:g} and rho {:g}",
        lambda f: [number for name, rho in won(f, "movielens") for number in (int(name[-2:]), rho)],
        "contradicted",
        lambda f: won(f, "movielens") == [(P99, 0.1)],
    ),
    Claim(
        "Figure 5: it has fewer counts that are off, at both percentiles",
        "{:.0f} to {:.0f} %, against {:.0f} to {:.0f} % at p95; at p99 fewer from rho {:g} on",
        lambda f: [
            *ends(off(f, "movielens")),
            *ends(off(f, "movielens", P95)),
            since(f, "movielens", fewer_off(f)),
        ],
        "holds, but for p99 at rho 0.1",
        lambda f: all(larger(off(f, "movielens", P95), off(f, "movielens"))) and fewer_off(f) == [False, True, True],
    ),
]


def numbers(found):
    """Return the numbers of every claim."""
    return {claim.text: claim.numbers(found) for claim in CLAIMS}
