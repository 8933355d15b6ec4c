"""Verification of released rows and their guarantee against a certificate."""

from __future__ import annotations

import ast
import json
import math
import os
from dataclasses import dataclass
from pathlib import Path

from discreet import _core, certified_rows, mechanisms, streams
from discreet.budgets.ledger import Ledger
from discreet.certified_rows import CALIBRATED, COUNTS_USERS
from discreet.engines import untrusted
from discreet.errors import InputError, ParameterError
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.threshold.base import ThresholdMechanism
from discreet.privacy.guarantee import UNITS, Guarantee, Promising, Unit, per_unit, rounded_up
from discreet.privacy.validation import require_choice, require_number, require_path
from discreet.release import export
from discreet.release.facts import Kind, Listed, Summed, measure_of, summed_of
from discreet.release.kept import l0_and_share
from discreet.release.provenance import Provenance
from discreet.theorems import confirmed_counts
from discreet.wording import counted

__all__ = ["Verified", "policy_text", "require_policy", "require_within", "verify"]

_FIELDS = ("made_by", "version", "rho", "delta", "unit", "neighbours", "columns", "digest")
"""The fields that every certificate has."""
_NOW = [
    *("guarantee", "seeded", "clipped", "kind", "listed", "measure", "item_type", "noise", "above", "spent_rho"),
    *("spent_delta", "calls", "stopped_early", "users", "notes"),
]
"""The further fields of every certificate of this version."""
_FORMER = {"spend": "meet_relative_error", "together": "shared_order"}
"""The current name of each renamed parameter. Old certificates have the former name."""
_RANKED = (
    mechanisms.GumbelTopK | mechanisms.ExponentialMechanism | mechanisms.DiscoverAndPeel | mechanisms.ContributionBound
)
"""The mechanisms that publish ranks."""
_MEASURES_USERS = COUNTS_USERS | mechanisms.CorrelatedCounts
"""The mechanisms that publish the number of users."""
_FINDS = mechanisms.DiscoverAndSum | mechanisms.Aggregates
"""The mechanisms that read rows, and find a bound on the items of a user if none is given."""
_SUMS = mechanisms.ClippedSums | mechanisms.DiscoverAndSum | mechanisms.PrivateSumRelease
"""The mechanisms whose bounds of sums are given."""
_NAMES = mechanisms.UnionMechanism | mechanisms.OptimalSelection
"""The mechanisms that publish names alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """The verified content of a certificate.

    Args:
        made_by: The mechanism and its parameters.
        guarantee: The guarantee that the certificate claims. The parameters of the mechanism imply it.
        version: The version of discreet that made the rows.
        digest: The SHA-256 of the rows as CSV.
        dataset: The dataset of the ledger that paid for the rows; None if no ledger was given.
        claims: The names of the fields that nothing in the file proves.
        provenance: What the certificate says about the origin of the rows; None if it says nothing.
        epsilon: The epsilon of the guarantee at the delta of the policy, rounded up; None if no policy was given.
        policy: The largest epsilon that the policy allows, and its delta; None if no policy was given.
        condition: What the guarantee assumes of the data, which nothing checks; None if it assumes nothing.
    """

    made_by: str
    guarantee: Guarantee
    version: str
    digest: str
    dataset: str | None = None
    claims: tuple[str, ...] = ()
    provenance: Provenance | None = None
    epsilon: float | None = None
    policy: tuple[float, float] | None = None
    condition: str | None = None

    def __str__(self) -> str:
        lines = [
            "the rows match their certificate",
            f"made by {export.plain_text(self.made_by)}, version {export.plain_text(self.version)}",
            f"guarantee: {self.guarantee.promise}",
            *([] if self.condition is None else [f"only if {self.condition}"]),
            *(f"{name}: {text}" for name, text in self.provenance or ()),
            *([] if self.policy is None else [policy_text(self.epsilon or 0.0, *self.policy)]),
            f"rows sha256 {self.digest}",
            f"not verifiable: {', '.join(self.claims)}",
        ]
        return "\n".join(lines if self.dataset is None else [*lines, f"paid for by the dataset {self.dataset!r}"])

    def __repr__(self) -> str:
        return str(self)


def verify(
    path: str | os.PathLike[str],
    *,
    ledger: str | os.PathLike[str] | None = None,
    max_epsilon: float | None = None,
    delta: float | None = None,
    unit: Unit = "user",
) -> Verified:
    """Verify a file that `Release.write(path, certificate=True)` wrote against its certificate.

    The rows must have the digest in the certificate. What the mechanism's parameters imply is recomputed from them: the
    guarantee, what the numbers count, the noise, the threshold, the bounds, and the sigmas of rows as far as they
    follow. The result names the other fields, which are claims. A certificate is not a signature: it reveals mistakes
    and damage, but does not prove who wrote it.

    The unit of the guarantee is a claim too, unless a stream or a ledger has it: the mechanism sees keys of users, and
    not whether a key is a user or a user in one day. With `ledger`, its dataset must have this unit.

    With `max_epsilon` and `delta`, the guarantee must also keep a policy: converted to (epsilon, delta)-DP at this
    delta, its epsilon, rounded up, must be at most `max_epsilon`. Add the guarantees of several releases for their
    total.

    Args:
        path: The file of released rows. Its certificate lies in the same folder.
        ledger: A ledger that must contain a release of these rows.
        max_epsilon: The largest epsilon that a policy allows: above 0 and at most 1000.
        delta: The total delta at which `max_epsilon` must hold: above 0 and below 1. Required with `max_epsilon`.
        unit: The unit that the policy is about, such as "user-day".

    Returns:
        The verified content of the certificate (`Verified`).

    Raises:
        ParameterError: `max_epsilon` or `delta` is out of range, or only one of them is given.
        InputError: A file cannot be read, the rows, the guarantee or the ledger do not match the certificate, or the
            guarantee exceeds the policy.
        LedgerError: The ledger cannot be read.

    Example:
        >>> import discreet as dp, tempfile
        >>> table = dp.Histogram.from_counts(["a"], [9000], l0=1, linf=1, complete=True)
        >>> release = dp.GaussianThreshold.from_rho(rho=1, delta=1e-6, l0=1).release(table)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     release.write(f"{folder}/rows.csv", certificate=True)
        ...     found = dp.verify(f"{folder}/rows.csv", max_epsilon=8, delta=2e-6)
        >>> round(found.guarantee.rho, 6), round(found.epsilon, 3)
        (1.0, 7.766)
    """
    policy = require_policy(max_epsilon, delta)
    path = require_path(path)
    if not os.path.exists(path):  # noqa: PTH110 - it raises nothing for a name that is too long
        raise InputError(f"cannot read {path}: no such file")
    if path.lower().endswith((".html", ".htm")):
        raise InputError(
            f"cannot verify {path}: a report has no certificate. Verify the rows in a file of .csv, .json, .jsonl or "
            ".parquet that was written with a certificate"
        )
    content = _read(export.certificate_of(path))
    try:
        made_by, version = str(content["made_by"]), str(content["version"])
        pair = (content["epsilon"], content["total_delta"]) if "epsilon" in content else None
        claimed = Guarantee(content["rho"], content["delta"], content["unit"], pair, content["neighbours"])
        columns, expected = [str(name) for name in content["columns"]], content["digest"]
        l0, _ = l0_and_share(content)
        summed = summed_of(content)
        provenance = Provenance.read(content["provenance"]) if "provenance" in content else None
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"the certificate of {path} {_fault(content, error)}; restore the certificate that was written with these "
            "rows"
        ) from None
    try:
        mechanism = _mechanism(made_by)
        promised, most = mechanism.guarantee, _most_l0(mechanism)
        facts = _Facts.of(mechanism, l0, summed)
    except (ValueError, TypeError, ImportError, AttributeError, RecursionError, MemoryError):
        raise InputError(
            f"the certificate of {path} names a mechanism that this version does not know: the certificate is damaged, "
            "or a newer version of discreet wrote it; restore the certificate, or update discreet"
        ) from None
    if facts.reads_rows and claimed.unit != "event":
        promised = per_unit(promised, claimed.unit)
    if not _implies(promised, claimed):
        raise InputError(f"the certificate of {path} claims more than its mechanism promises, which is {promised}")
    if l0 is not None and most is not None and l0 > most:
        raise InputError(
            f"the certificate of {path} says l0 = {l0:,}, but its mechanism takes at most {counted(most, 'item')} of a "
            "user"
        )
    if content.get("seeded", False) is not False or content.get("claimed", False) is not False:
        raise InputError(
            f"the certificate of {path} says that the rows give no privacy, or were read from a file; no release has "
            "such a certificate"
        )
    if (wrong := _contradicted(content, claimed, facts, summed)) is not None:
        raise InputError(
            f"the certificate of {path} has fields that its mechanism does not imply: {wrong}. Restore the certificate "
            "that was written with these rows"
        )
    digest = export.file_digest(path, columns, content)
    if digest != expected:
        raise _written_again(
            f"the rows of {path} are not those of its certificate: the SHA-256 of the rows differs. Restore the file "
            "that was written with this certificate"
        )
    if (rows := certified_rows.rows_of(path)) is not None and (
        wrong := certified_rows.contradicted(rows, facts)
    ) is not None:
        raise InputError(
            f"the rows of {path} contradict the mechanism of the certificate in the column {wrong}. Restore the files "
            "that were written together"
        )
    dataset = None if ledger is None else _paid_by(ledger, digest, made_by, provenance, claimed)
    epsilon = None if policy is None else require_within(claimed, *policy, what=f"the guarantee of {path}", unit=unit)
    return Verified(
        made_by=made_by,
        guarantee=claimed,
        version=version,
        digest=digest,
        dataset=dataset,
        condition=mechanism.assumes if isinstance(mechanism, streams.StreamMechanism) else None,
        claims=(
            *_claims(content, facts, is_paid=dataset is not None),
            *(() if rows is not None else ("the rows: the file is too large",)),
        ),
        epsilon=epsilon,
        policy=policy,
        provenance=provenance,
    )


def require_policy(max_epsilon: object, delta: object) -> tuple[float, float] | None:
    """Return a policy, the largest epsilon and its delta, or None if none is given."""
    if max_epsilon is None and delta is None:
        return None
    if max_epsilon is None or delta is None:
        raise ParameterError(
            "give both max_epsilon and delta: the epsilon of a guarantee depends on it", names="max_epsilon delta"
        )
    return require_number("max_epsilon", max_epsilon, 0, 1000), require_number(
        "delta", delta, 0, 1, open_low=False, open_high=True
    )


def require_within(guarantee: Guarantee, max_epsilon: float, delta: float, *, what: str, unit: Unit = "user") -> float:
    """Return the epsilon of a guarantee at a delta, rounded up; raise InputError if it exceeds the policy."""
    if guarantee.unit != require_choice("unit", unit, tuple(UNITS)):
        raise InputError(
            f"{what} is per {UNITS[guarantee.unit]}, and the policy is per {UNITS[unit]}: no epsilon of the one "
            f"follows from the other. Release with the unit of the policy, or check a policy with unit={guarantee.unit}"
        )
    try:
        is_pure = guarantee.dp is not None and guarantee.dp[1] == 0 == delta
        epsilon = guarantee.dp[0] if is_pure and guarantee.dp is not None else guarantee.epsilon(delta)
    except ParameterError:
        raise InputError(
            f"{what} exceeds the policy: it has no epsilon at delta {delta:g}, because its own delta is "
            f"{guarantee.delta:g}. Release with a smaller delta, or choose a policy with a larger one"
        ) from None
    if epsilon > max_epsilon:
        raise InputError(f"{what} exceeds the policy: {policy_text(epsilon, max_epsilon, delta)}")
    return epsilon


def policy_text(epsilon: float, most: float, delta: float) -> str:
    """Return an epsilon and the largest allowed one, with enough digits to tell them apart."""
    shown, limit = f"{rounded_up(epsilon):.4g}", f"{most:g}"
    if (float(shown) > float(limit)) != (epsilon > most):
        shown, limit = repr(epsilon), repr(most)
    return f"epsilon {shown} at delta {delta:g}; the policy allows at most {limit}"


def _fault(content: untrusted.Fields, error: Exception) -> str:
    """Return what is wrong with the fields of a certificate that raised this error."""
    names = [*_FIELDS, "total_delta"] if "epsilon" in content else _FIELDS
    missing = [name for name in names if name not in content]
    if missing:
        return f"lacks the field{'s' if len(missing) > 1 else ''} {', '.join(missing)}"
    detail = str(error) if isinstance(error, ValueError) else "columns must be a list of names"
    return f"has an invalid field: {detail}"


def _written_again(text: str) -> InputError:
    """Return an error with the remedy of a caller who still has the Release."""
    remedy = ". If you still have the Release, write it again with certificate=True, which costs no budget"
    error = InputError(text + remedy)
    error.only_in_python = remedy
    return error


def _read(path: Path) -> untrusted.Fields:
    try:
        content = json.loads(untrusted.content(path, untrusted.CERTIFICATE))
    except (OSError, ValueError, RecursionError):
        raise _written_again(
            f"cannot read the certificate {path}: find the file that was written with these rows. Rows without a "
            "certificate cannot be verified; drawing new rows costs budget"
        ) from None
    return content if isinstance(content, dict) else {}


def _mechanism(made_by: str) -> Promising:
    """Return the mechanism that a text such as "GumbelTopK(k=10, scale=2.0)" describes; only literals are evaluated."""
    return _made(export.call(made_by))


def _made(call: ast.Call) -> Promising:
    name = ast.unparse(call.func)
    for room in (mechanisms, streams):
        if name in room.__all__:
            given = {str(keyword.arg): _value(keyword.value) for keyword in call.keywords}
            made: Promising = getattr(room, name)(**{_FORMER.get(name, name): value for name, value in given.items()})
            return made
    raise ValueError("a mechanism must be a public class of the package")


def _value(node: ast.expr) -> object:
    """Return a parameter: a literal, a mechanism, or a tuple of these."""
    if isinstance(node, ast.Tuple):
        return tuple(map(_value, node.elts))
    return _made(node) if isinstance(node, ast.Call) else ast.literal_eval(node)


def _most_l0(mechanism: Promising) -> int | None:
    """Return the largest l0 of a release of this mechanism, or None if any l0 is possible."""
    mechanism = _bounded(mechanism)
    if isinstance(mechanism, mechanisms.CountsWithFoundBound):
        return mechanism.most
    if isinstance(mechanism, _FINDS) and mechanism.finds_l0:
        return mechanism.most
    if isinstance(mechanism, mechanisms.CountsWithShare | mechanisms.KeptPairs | _FINDS):
        return mechanism.l0
    return mechanism.protects.l0 if isinstance(mechanism, HistogramMechanism) else None


def _bounded(mechanism: Promising, summed: Summed | None = None) -> Promising:
    """Return a mechanism that finds bounds of sums as that of its later steps, with possible bounds of a release."""
    if isinstance(mechanism, mechanisms.SumsWithFoundBounds):
        return mechanism.later(summed.high if summed and summed.high in mechanism.candidates else 1)
    return mechanism


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """The fields of a certificate that follow from a mechanism."""

    mechanism: Promising
    bounded: Promising
    """The mechanism without its search for bounds of sums."""
    innermost: object
    law: str
    known: frozenset[object]
    """The items that are published without a threshold."""
    replaced: bool

    @classmethod
    def of(cls, mechanism: Promising, l0: int | None, summed: Summed | None) -> _Facts:
        bounded = inner = _bounded(mechanism, summed)
        if isinstance(inner, mechanisms.CountsWithFoundBound):
            inner = inner.counting(l0 or 1)[0]
        if isinstance(inner, _FINDS) and inner.finds_l0:
            inner = inner.bounded(l0 or 1)
        known, replaced = frozenset[object](), False
        while isinstance(inner, mechanisms.Replacement | mechanisms.CountsWithShare | mechanisms.KnownItems):
            replaced |= isinstance(inner, mechanisms.Replacement)
            if isinstance(inner, mechanisms.KnownItems):
                known |= {*inner.items}
            inner = inner.mechanism
        law = getattr(inner, "law", "gaussian")
        return cls(mechanism=mechanism, bounded=bounded, innermost=inner, law=law, known=known, replaced=replaced)

    @property
    def kind(self) -> Kind:
        found: Kind = getattr(self.mechanism, "releases", "users")
        return found

    @property
    def may_count_events(self) -> bool:
        """Whether a user may add more than one to a count of a histogram."""
        return isinstance(self.mechanism, HistogramMechanism) and self.mechanism.protects.linf > 1

    def has_kind(self, kind: object, most: object) -> bool:
        """Return whether a release can have counts of this kind, with this bound on what a user adds to one count."""
        made = self.mechanism
        if kind == "events" and isinstance(made, HistogramMechanism):
            return type(most) is int and 1 < most <= made.protects.linf
        if isinstance(made, streams.StreamMechanism):
            return kind == self.kind and most == (made.alone if made.alone > 1 else None)
        return kind == self.kind and most == (made.most if isinstance(made, mechanisms.KeptPairs) else None)

    @property
    def listed(self) -> Listed:
        """Which items are published even if nobody has them."""
        found: Listed = getattr(self.mechanism, "lists_items", "none")
        return found

    @property
    def always_clips(self) -> bool:
        made = self.mechanism
        clips = isinstance(made, mechanisms.TableMechanism | mechanisms.KeptPairs | streams.StreamMechanism)
        is_free = isinstance(made, mechanisms.Aggregates) and made.items is not None and self.l0 is None
        return clips and not isinstance(made, CALIBRATED) and not is_free

    @property
    def reads_rows(self) -> bool:
        """Whether the mechanism sees keys of users, which may be users in one period."""
        kinds = HistogramMechanism | mechanisms.UnionMechanism | mechanisms.TableMechanism
        return isinstance(self.mechanism, kinds)

    @property
    def measures(self) -> tuple[list[str], ...]:
        """The possible columns after those of the items."""
        made = self.innermost
        if isinstance(made, _RANKED):
            return (["rank"],)
        if isinstance(made, _NAMES) or (isinstance(made, mechanisms.TruncatedGeometric) and not made.with_counts):
            return ([],)
        counts = ["count", "sigma"]
        if isinstance(made, CALIBRATED):
            return ([*counts, "method"],)
        if isinstance(made, mechanisms.Aggregates):
            return (made.names,)
        return (counts, []) if isinstance(made, HistogramMechanism) else (counts,)  # `select` drops counts

    @property
    def l0(self) -> int | None:
        """The bound of every release with counts, or None if there is none, or it depends on the release."""
        made = self.bounded
        if isinstance(made, mechanisms.Plume):
            return made.m_prime
        if isinstance(made, mechanisms.ClippedSums):
            return made.l0 if made.moved < len(made.items) else None
        if isinstance(made, mechanisms.Aggregates) and made.items is not None:
            return made.l0 if made.l0 is not None and made.l0 < len(made.items) else None
        if isinstance(made, streams.StreamMechanism):
            return made.protects.l0
        bounded = mechanisms.CountsWithShare | mechanisms.KeptPairs | _FINDS
        return made.l0 if isinstance(made, bounded) else None

    @property
    def claims_l0(self) -> bool:
        """Whether the bound of counts depends on the release: on a histogram, or on a bound that was found."""
        made = self.bounded
        is_given = isinstance(made, HistogramMechanism) and not self.always_clips
        finds = isinstance(made, _FINDS) and made.finds_l0
        return is_given or finds or isinstance(made, mechanisms.CountsWithFoundBound)

    def sums(self, summed: Summed | None) -> bool:
        """Return whether a release has these bounds and this resolution of sums."""
        made = self.bounded
        if not isinstance(made, _SUMS):
            return summed is None
        if summed is None:
            return False
        return (summed.low, summed.high) == (made.low, made.high) and summed.resolution in (None, made.resolution)

    def has_threshold(self, above: object, *, has_counts: bool) -> bool:
        """Return whether a release can have this threshold. In a table of counts of at least a number it is higher."""
        made = self.threshold
        if above is None or made is None:
            return above is None and not (has_counts and made is not None)
        return type(above) is int and above >= made.threshold.value

    @property
    def threshold(self) -> ThresholdMechanism | None:
        """The mechanism that selects items by a threshold, or None."""
        made = self.innermost
        if isinstance(made, mechanisms.Aggregates):
            return made.selection if made.items is None else None
        return made if isinstance(made, ThresholdMechanism) else None

    def has_round(self, number: object) -> bool:
        """Return whether a release can be of this round."""
        if not isinstance(self.mechanism, streams.StreamMechanism):
            return number is None
        last = self.mechanism.last_round
        return type(number) is int and number >= 0 and (last is None or number <= last)

    @property
    def steps(self) -> bool:
        """Whether the mechanism draws items one after another, so that a release can cost less than its guarantee."""
        kinds = mechanisms.PrivateCountRelease | mechanisms.PrivateSumRelease | mechanisms.GumbelTopK
        return isinstance(self.innermost, COUNTS_USERS | kinds)


def _contradicted(content: untrusted.Fields, claimed: Guarantee, facts: _Facts, summed: Summed | None) -> str | None:
    """Return the fields of a certificate that its mechanism does not imply, or None.

    A missing field says nothing in a certificate of another version.
    """
    mechanism, kind, given = facts.mechanism, content.get("item_type", "string"), content.get
    columns = [*content["columns"]]
    fields = [["item"]] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    names = [one[0] for one in fields if isinstance(one, list) and one]
    measures = columns[len(names) :]
    has_counts = measures[:2] == ["count", "sigma"]
    own_kind, l0 = given("kind", facts.kind), given("l0")
    most = given("most", mechanism.most if isinstance(mechanism, mechanisms.KeptPairs) else None)
    clips = facts.always_clips and has_counts
    clipped = given("clipped", clips)
    exact = not facts.steps
    checks: dict[str, bool] = {
        "total_delta": ("epsilon" in content) == ("total_delta" in content),
        "columns": columns[: len(names)] == names and measures in facts.measures,
        "kind": facts.has_kind(own_kind, most),
        "listed": given("listed", facts.listed) == facts.listed,
        "noise": given("noise", facts.law) == facts.law,
        "clipped": isinstance(clipped, bool)
        and (clipped or (not clips and l0 is None))
        and (has_counts or not clipped),
        "l0": "l0" not in content or facts.claims_l0 or l0 == (facts.l0 if has_counts else None),
        "summed": facts.sums(summed) and (given("summed", summed) is None) == (summed is None),
        "above": "above" not in content or facts.has_threshold(given("above"), has_counts=has_counts),
        "round": facts.has_round(given("round")),
        "users": _has_users(given("users"), facts),
        "calls": facts.steps or _is_one(given("calls", 1)),
        "stopped_early": given("stopped_early", False) is False or facts.steps,
        "spent_rho": "spent_rho" not in content or _is_part(given("spent_rho"), claimed.rho, exact=exact),
        "spent_delta": "spent_delta" not in content or _is_part(given("spent_delta"), claimed.delta, exact=exact),
    }
    if content["version"] == _core.__version__:  # another version may have other words, and a tighter guarantee
        own, measure = mechanism.guarantee, "items by rank" if measures else "items"
        if has_counts:
            bounds = {"l0": facts.l0 or l0, "most": most if type(most) is int else None}
            measure = measure_of(own_kind, clipped=clipped, **bounds, summed=summed, unit=claimed.unit)
        checks |= {
            "guarantee": given("guarantee", claimed.promise) == claimed.promise,
            "measure": given("measure", measure) == measure,
            "rho": claimed.rho <= own.rho * (1 + 1e-9),
            "delta": claimed.delta <= own.delta * (1 + 1e-9),
        }
        checks["summed"] &= ("summed" in content) == (summed is not None)
        checks["l0"] &= not has_counts or facts.l0 is None or l0 == facts.l0
        checks |= dict.fromkeys((name for name in _NOW if name not in content), False)
    wrong = [name for name, is_right in checks.items() if not is_right]
    return ", ".join(wrong) or None


def _has_users(users: object, facts: _Facts) -> bool:
    """Return whether a release can have this number of users: one that is measured at least once."""
    made = facts.innermost
    if isinstance(made, mechanisms.CountsWithPublicItems):
        made = made.public
    if users is None or not isinstance(made, _MEASURES_USERS) or facts.replaced:
        return users is None and not isinstance(made, mechanisms.CalibratedCounts | mechanisms.CorrelatedCounts)
    is_pair = isinstance(users, list) and [type(part) in (int, float) for part in users] == [True, True]
    if isinstance(made, mechanisms.CorrelatedCounts):
        return is_pair and math.isclose(users[1], made.sigmas[1], rel_tol=1e-9)  # type: ignore[index]
    return is_pair and 0 < users[1] <= confirmed_counts.first_sigma(made.rho) * (1 + 1e-9)  # type: ignore[index]


def _is_one(value: object) -> bool:
    return type(value) is int and value == 1


def _is_part(value: object, most: float, *, exact: bool) -> bool:
    if type(value) not in (int, float):
        return False
    return value == most if exact else 0 <= value <= most  # type: ignore[operator]


def _claims(content: untrusted.Fields, facts: _Facts, *, is_paid: bool) -> tuple[str, ...]:
    """Return the fields of a certificate that neither its mechanism nor its rows imply, nor the ledger that paid."""
    made, is_sum = facts.mechanism, facts.kind == "sums"
    measures = mechanisms.CountsWithShare | mechanisms.CountsWithFoundBound | mechanisms.KeptPairs
    found = {
        "unit": facts.reads_rows and not is_paid,
        "guarantee": content["version"] != _core.__version__,
        "measure": content["version"] != _core.__version__,
        "spent_rho": facts.steps,
        "spent_delta": facts.steps,
        "calls": facts.steps,
        "stopped_early": facts.steps,
        "clipped": facts.claims_l0 and isinstance(made, HistogramMechanism),
        "kind": facts.may_count_events,
        "most": facts.may_count_events,
        "l0": facts.claims_l0,
        "kept_share": isinstance(made, measures),
        "above": facts.threshold is not None,
        "users": isinstance(made, _MEASURES_USERS),
        "round": isinstance(made, streams.StreamMechanism),
        "the bounds of summed": isinstance(made, mechanisms.SumsWithFoundBounds),
        "the column of summed": is_sum,
        "the sigmas of means": isinstance(made, mechanisms.Aggregates) and bool(made.means),
    }
    claims = [name for name, is_claim in found.items() if is_claim]
    origin = ("provenance",) if "provenance" in content else ()
    return ("made_by", "version", "item_type", *claims, "every", "part_of", *origin, "notes")


def _implies(promised: Guarantee, claimed: Guarantee) -> bool:
    """Return whether the mechanism's guarantee is at least as strong as the claimed one."""
    if (promised.unit, promised.neighbours) != (claimed.unit, claimed.neighbours):
        return False
    if promised.rho > claimed.rho or promised.delta > claimed.delta:
        return False
    if claimed.dp is None:
        return True
    if promised.dp is not None and promised.dp[0] <= claimed.dp[0] and promised.dp[1] <= claimed.dp[1]:
        return True
    return claimed.dp[1] > 0 and promised.implies(*claimed.dp)


def _paid_by(
    ledger: str | os.PathLike[str], digest: str, made_by: str, provenance: Provenance | None, claimed: Guarantee
) -> str:
    """Return the dataset of the ledger that paid for these rows.

    The mechanism is compared too, because all empty releases have the same digest.
    """
    opened = Ledger.open(ledger, create=False)
    rows = opened.history
    found = [row for row in rows if row.digest == digest and f"{row.mechanism}({row.parameters})" == made_by]
    if not found:
        raise InputError(
            f"the ledger {ledger} has no release of these rows by this mechanism; give the ledger that paid for them"
        )
    paid = [row for row in found if all(getattr(row, name) == text for name, text in provenance or ())]
    if not paid:
        raise InputError(
            f"the ledger {ledger} paid for these rows under another provenance than that of their certificate; restore "
            "the certificate that was written with these rows"
        )
    for name in dict.fromkeys(row.dataset for row in reversed(paid)):
        if opened.dataset(name).guarantee.unit == claimed.unit:
            return name
    raise InputError(
        f"the ledger {ledger} paid for these rows from a dataset of another unit than {claimed.unit}, which the "
        "certificate says; restore the certificate that was written with these rows"
    )
