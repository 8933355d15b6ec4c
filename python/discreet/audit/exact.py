"""Comparison of guarantees with exact output distributions (laws), and of these laws with runs of the mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from discreet import _core
from discreet.audit.calibrated import audited
from discreet.audit.findings import ORDERS, SLACK, Audit, Divergence, Finding, Misfit, delta_findings, promises, renyi
from discreet.audit.neighbours import neighbours, unwrapped
from discreet.audit.runs import compared, released, tables
from discreet.errors import ParameterError
from discreet.laws import joint_law
from discreet.mechanisms.base import opened_rng
from discreet.mechanisms.counts.calibrated_counts import CalibratedCounts
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.noises import EpsilonPerItem
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.mechanisms.threshold.optimal_selection import OptimalSelection
from discreet.privacy.guarantee import Guarantee, claimed_pair
from discreet.privacy.validation import require_whole

__all__ = ["all_novel", "audit", "examine"]

_LIMITS = ("the step before: how rows are read, and how the items of a user are bounded and counted",)
_RUN_PAIRS = 3
"""The number of pairs whose tables are also released. In the first pair, one user has all items of the second table."""


def audit(
    mechanism: HistogramMechanism | CalibratedCounts,
    *,
    pairs: int = 1000,
    seed: int = 0,
    dp: tuple[float, float] | None = None,
    runs: int = 1000,
    rng: _core.Rng | None = None,
) -> Audit:
    """Verify a mechanism's guarantee with its exact laws on neighbouring histograms, and with runs.

    The audit examines `pairs` neighbouring pairs of histograms with few items. Counts are small or near the mechanism's
    thresholds. The audit then releases each histogram of the first three pairs, and at most two others, `runs` times.
    It compares these releases with the exact law. A mechanism that follows its law fails this comparison with
    probability at most 1e-9. One output of probability zero under the law suffices to fail.

    If a mechanism decides about each item by itself, the audit also checks the case of a user whose l0 items nobody
    else has.

    `CalibratedCounts` reads the items of every user. Its audit replays the steps of a release on `pairs` pairs of small
    tables, one of which has one user more, with the same published values. The tables must lead to the same decisions,
    and the exact rho of all measurements must be at most what a release charges. The law of the weighted counts is
    compared with the delta and the rho of their step, also for users whose items nobody else has. The audit then
    releases two tables `runs` times each. It compares the items that a release names by weights, and their noisy
    weights, with the exact law given what the release published before. It compares 5 whole releases of each table with
    the reference implementation, from the same random bits. The step that confirms the most common items has too
    many outcomes for an exact law; only this last comparison covers it.

    Args:
        mechanism: A mechanism whose exact law is known, or `CalibratedCounts`.
        pairs: The number of neighbouring pairs, at least 1.
        seed: The seed of the pairs. It does not seed the noise.
        dp: An (epsilon, delta) pair to check in addition to the mechanism's own guarantee; None for no pair.
        runs: The number of releases of each table: 0, or 100 to 1e7. With 0 the mechanism is not run.
        rng: Randomness for tests (`discreet.testing.seeded_rng`). By default the operating system provides randomness.

    Returns:
        An Audit: the violations, the tightest finding, and the outcomes that do not follow the law.

    Raises:
        ParameterError: The exact law of the mechanism is not known or has too many outcomes to enumerate, or another
            parameter is out of range. For `CalibratedCounts`: the guarantee does not imply `dp`.

    Example:
        >>> import discreet as dp
        >>> mechanism = dp.TruncatedGeometric(epsilon=1.0, delta=1e-2)
        >>> found = dp.audit.audit(mechanism, pairs=20, runs=0)
        >>> found.failed
        False
    """
    pairs = require_whole("pairs", pairs, 1)
    runs = require_whole("runs", runs, 0, 10**7)
    seed, dp = require_whole("seed", seed, 0, 2**64 - 1), claimed_pair(dp)
    if 0 < runs < 100:
        raise ParameterError(f"runs must be 0 or from 100 to 10,000,000, not {runs}: fewer runs detect too little")
    mechanism = auditable(mechanism)
    if isinstance(mechanism, CalibratedCounts):
        return audited(mechanism, pairs=pairs, seed=seed, dp=dp, runs=runs, rng=rng)
    guarantee = mechanism.guarantee if dp is None else replace(mechanism.guarantee, dp=dp)
    tightest: Finding | None = None
    quoted: Finding | None = None
    violations = []
    novel = all_novel(mechanism, guarantee)
    if novel is not None and novel.delta > novel.allowed * (1 + 1e-9):
        violations.append(novel)
    looked_at: list[tuple[Mapping[str, int], Mapping[str, int]]] = []
    for first, second in neighbours(mechanism, pairs, seed):
        if len(looked_at) < _RUN_PAIRS:
            looked_at.append((first, second))
        findings = _findings(mechanism, first, second, guarantee)
        worst = max(findings, key=lambda finding: finding.ratio)
        if worst.violates:
            violations.append(worst)
        tightest = max(tightest or worst, worst, key=lambda finding: finding.ratio)
        if guarantee.dp is not None:
            quoted = max(quoted or findings[0], findings[0], key=lambda finding: finding.ratio)
    assert tightest is not None
    violations.sort(key=lambda finding: -finding.ratio)
    misfits: list[Misfit] = []
    found = []
    if runs:
        stream = opened_rng(rng)
        found = [(table, released(mechanism, table, runs, stream)) for table in tables(mechanism, looked_at)]
        misfits = compared(mechanism, found)
    return Audit(
        mechanism=repr(mechanism),
        guarantee=guarantee,
        pairs=pairs,
        violations=tuple(violations),
        tightest=tightest,
        quoted=quoted,
        runs=runs,
        misfits=tuple(misfits),
        tables=len(found),
        releases=runs * len(found),
        compared=_compared(runs=bool(runs), novel=novel is not None),
        limits=_LIMITS,
    )


def _compared(*, runs: bool, novel: bool) -> tuple[str, ...]:
    """Return what an audit compared."""
    most = "the exact distribution of releases of both tables of each pair, with the delta at several epsilons and rho"
    alone = "the chance that an item is released whose only user has l0 such items, with delta"
    how = "releases of some tables with their exact distribution: the items, their order and their noisy counts"
    return (most, *([alone] if novel else []), *([how] if runs else []))


def auditable(mechanism: object) -> HistogramMechanism | CalibratedCounts:
    """Return `mechanism` if its law is known, else raise ParameterError."""
    if isinstance(mechanism, HistogramMechanism | CalibratedCounts):
        return mechanism
    raise ParameterError.about(
        "the exact law of {} is not known, so its guarantee rests on its proof and cannot be "
        "audited; choose a mechanism of count, of top_k with {method:'gumbel'} or of select with {method:'threshold'}",
        type(mechanism).__name__,
    )


def examine(mechanism: HistogramMechanism, first: Mapping[str, int], second: Mapping[str, int]) -> Finding:
    """Return the finding with the largest ratio for one pair of histograms, over several epsilons and Renyi orders."""
    return max(_findings(mechanism, first, second, mechanism.guarantee), key=lambda finding: finding.ratio)


def _findings(
    mechanism: HistogramMechanism, first: Mapping[str, int], second: Mapping[str, int], guarantee: Guarantee
) -> list[Finding]:
    """Return a finding for each guaranteed (epsilon, delta), beginning with the (epsilon, delta) of `guarantee`.

    If rho must hold without delta, each Renyi divergence that exceeds rho times its order adds a finding.
    """
    p, q = joint_law(mechanism, first, second)
    pair = {"first": first, "second": second}
    asked = dict.fromkeys((*promises(guarantee), *promises(mechanism.guarantee)))
    findings = delta_findings(p, q, asked, pair)
    rho = mechanism.guarantee.rho
    for order in ORDERS if _without_delta(mechanism, first, second) else ():
        divergence = renyi(p, q, order) / order
        if divergence > rho * (1 + 1e-9) + SLACK:
            findings.append(Divergence(epsilon=order, delta=divergence, allowed=rho, **pair))
    return findings


def _without_delta(mechanism: HistogramMechanism, first: Mapping[str, int], second: Mapping[str, int]) -> bool:
    """Return whether rho must hold without delta.

    It must if the guarantee has no delta, or if both histograms have the same items and the mechanism considers all of
    them. A mechanism with an
    (epsilon, delta) for each item is an exception: it needs delta even then.
    """
    if mechanism.guarantee.delta == 0:
        return True
    if isinstance(unwrapped(mechanism), EpsilonPerItem) or set(first) != set(second):
        return False
    k_bar: int | None = getattr(unwrapped(mechanism), "k_bar", None)
    return k_bar is None or len(first) <= k_bar


def all_novel(mechanism: HistogramMechanism, guarantee: Guarantee) -> Finding | None:
    """Return the finding for a user with l0 items that nobody else has.

    Return None if the mechanism has no l0, or does not decide about each item by itself. Any of the user's items in the
    output reveals the user. The mechanism releases each of these items with probability p. So 1 - (1 - p)^l0 must be at
    most the delta of the guarantee.
    """
    mechanism = unwrapped(mechanism)
    protected = mechanism.protects
    if not isinstance(mechanism, ThresholdMechanism | OptimalSelection) or protected.l0 is None:
        return None
    chance = mechanism.release_chance(protected.linf)
    seen = -math.expm1(protected.l0 * math.log1p(-min(chance, 1 - 1e-16)))
    allowed = guarantee.delta if guarantee.dp is None else min(guarantee.delta, guarantee.dp[1])
    second = {"each of l0 items": protected.linf}
    return Finding(epsilon=math.inf, delta=seen * (1 - 1e-9), allowed=allowed, first={}, second=second)
