"""Verification of released rows and their guarantee against a certificate."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from discreet import _core, streams
from discreet.budgets.ledger import Ledger
from discreet.budgets.record import Spending
from discreet.engines import untrusted
from discreet.errors import InputError, OnlyInPython
from discreet.formats import RELEASED, TEXTS, alternatives, require_suffix
from discreet.privacy.guarantee import Guarantee, Unit, per_unit
from discreet.privacy.policy import policy_text, require_policy, require_within
from discreet.privacy.validation import require_path
from discreet.release import export, reading
from discreet.release.blocks import distinct_keys
from discreet.release.facts import COUNTS, RANKS, Facts, Summed, measure_of, summed_of
from discreet.release.kept import l0_and_share
from discreet.release.made_by import mechanism_of
from discreet.release.provenance import Provenance
from discreet.wording import counted

__all__ = ["Verified", "sum_of", "total_of", "verify", "verify_all"]

_FIELDS = ("made_by", "version", "rho", "delta", "unit", "neighbours", "columns", "digest")
"""The fields that every certificate has."""
_NOW = [
    *("guarantee", "seeded", "clipped", "kind", "listed", "measure", "item_type", "noise", "above", "spent_rho"),
    *("spent_delta", "calls", "stopped_early", "users", "notes"),
]
"""The further fields of every certificate of this version."""


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
        charge: The number of the charge in the ledger; None if no ledger was given.
        epsilon: The epsilon of the guarantee at the delta of the policy, rounded up, with a ledger of the sum with all
            other charges of the dataset; None if no policy was given.
        policy: The largest epsilon that the policy allows, and its delta; None if no policy was given.
        condition: What the guarantee assumes of the data, which nothing checks; None if it assumes nothing.
    """

    made_by: str
    guarantee: Guarantee
    version: str
    digest: str
    dataset: str | None = None
    charge: int | None = None
    claims: tuple[str, ...] = ()
    provenance: Provenance | None = None
    epsilon: float | None = None
    policy: tuple[float, float] | None = None
    condition: str | None = None

    def __str__(self) -> str:
        whose = "" if self.dataset is None else f"all charges to the dataset {self.dataset!r}: "
        lines = [
            "the rows match their certificate",
            f"made by {export.shown_call(self.made_by)}, version {export.plain_text(self.version)}",
            f"guarantee: {self.guarantee.promise}",
            *([] if self.condition is None else [f"only if {self.condition}"]),
            *(f"{name}: {text}" for name, text in self.provenance or ()),
            *([] if self.policy is None else [whose + policy_text(self.epsilon or 0.0, *self.policy)]),
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

    The rows must have the digest in the certificate. The fields that follow from the mechanism's parameters are
    recomputed: the guarantee, what the numbers count, the noise, the threshold, the bounds, and the sigmas of rows as
    far as they follow. The result names the other fields, which are claims. A certificate is not a signature: it
    reveals mistakes and damage, but does not prove who wrote it.

    The unit of the guarantee is a claim too, unless a stream or a ledger has it: the mechanism sees keys of users, and
    not whether a key is a user or a user in one day. With `ledger`, its dataset must have this unit.

    With `max_epsilon` and `delta`, the guarantee must also keep a policy: converted to (epsilon, delta)-DP at this
    delta, its epsilon, rounded up, must be at most `max_epsilon`. Add the guarantees of several releases for their
    total. With `ledger`, all other charges of the dataset that paid count too.

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
    (found,) = verify_all([path], ledger)
    if policy is None:
        return found
    total, others = total_of([found], ledger)
    what = f"the guarantee of {require_path(path)}"
    what += f" and of {counted(len(others), 'other charge')} to {found.dataset}" if others else ""
    epsilon = require_within(total, *policy, what=what, unit=unit, parts=1 + len(others))
    return replace(found, epsilon=epsilon, policy=policy)


def verify_all(paths: Iterable[str | os.PathLike[str]], ledger: str | os.PathLike[str] | None) -> Iterator[Verified]:
    """Verify files, each before it is yielded. Files of equal releases get different charges, as far as there are."""
    taken: set[int | None] = set()
    for path in paths:
        found = _verified(require_path(path), ledger, taken)
        taken.add(found.charge)
        yield found


def _verified(path: str, ledger: str | os.PathLike[str] | None, taken: Collection[int | None]) -> Verified:
    if not os.path.exists(path):  # noqa: PTH110 - it raises nothing for a name that is too long
        raise InputError(f"cannot read {path}: no such file")
    if path.lower().endswith((".html", ".htm")):
        raise InputError(
            f"cannot verify {path}: a report has no certificate. Verify the rows in a file of "
            f"{alternatives('.' + suffix for suffix in RELEASED)} that was written with a certificate"
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
        mechanism = mechanism_of(made_by)
        promised = mechanism.guarantee
        facts = mechanism._facts(l0, summed)
        most = facts.largest_l0
    except (ValueError, TypeError, ImportError, AttributeError, RecursionError, MemoryError):
        raise InputError(
            f"the certificate of {path} names a mechanism that this version does not know: the certificate is damaged, "
            "or a newer version of discreet wrote it; restore the certificate, or update discreet"
        ) from None
    if facts.is_keyed and claimed.unit != "event":
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
    if (wrong := _contradicted(content, claimed, promised, facts, summed)) is not None:
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
    if (rows := _rows(path)) is not None and (wrong := facts.contradicted(rows)) is not None:
        raise InputError(
            f"the rows of {path} contradict the mechanism of the certificate in the column {wrong}. Restore the files "
            "that were written together"
        )
    paid = None if ledger is None else _paid_by(ledger, digest, made_by, provenance, claimed, taken)
    return Verified(
        made_by=made_by,
        guarantee=claimed,
        version=version,
        digest=digest,
        dataset=None if paid is None else paid.dataset,
        charge=None if paid is None else paid.number,
        condition=mechanism.assumes if isinstance(mechanism, streams.StreamMechanism) else None,
        claims=(
            *_claims(content, facts, is_paid=paid is not None),
            *(() if rows is not None else ("the rows: the file is too large",)),
        ),
        provenance=provenance,
    )


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
    return InputError.about("{}{}", text, OnlyInPython(remedy))


def _rows(path: str) -> untrusted.Fields | None:
    """Return the fields of the release in a file; None for a file that is too large to be read."""
    if require_suffix(path) in TEXTS:
        try:
            untrusted.content(Path(path))
        except InputError:
            return None
    return reading.read(path, agreeing=True)


def _read(path: Path) -> untrusted.Fields:
    try:
        content = json.loads(untrusted.content(path, untrusted.CERTIFICATE), object_pairs_hook=distinct_keys)
    except (OSError, ValueError, RecursionError):
        raise _written_again(
            f"cannot read the certificate {path}: find the file that was written with these rows. Rows without a "
            "certificate cannot be verified. `discreet stream show FILE -o ROWS --certificate` writes those of a "
            "stream again at no cost; drawing new rows of another release costs budget"
        ) from None
    return content if isinstance(content, dict) else {}


def _contradicted(
    content: untrusted.Fields, claimed: Guarantee, own: Guarantee, facts: Facts, summed: Summed | None
) -> str | None:
    """Return the fields of a certificate that its mechanism does not imply, or None.

    A missing field says nothing in a certificate of another version.
    """
    kind, given = content.get("item_type", "string"), content.get
    columns = [*content["columns"]]
    fields = [["item"]] if isinstance(kind, str) else kind if isinstance(kind, list) else []
    names = [one[0] for one in fields if isinstance(one, list) and one]
    measures = columns[len(names) :]
    has_counts = tuple(measures[:2]) in (COUNTS, *(own[:2] for own in facts.columns if own[1:] and own[:1] != RANKS))
    own_kind, l0 = given("kind", facts.kind), given("l0")
    most = given("most", facts.most if facts.kind == "pairs" else None)
    clips = facts.clips and has_counts
    clipped = given("clipped", clips)
    exact = not facts.steps
    checks: dict[str, bool] = {
        "total_delta": ("epsilon" in content) == ("total_delta" in content),
        "columns": columns[: len(names)] == names and tuple(measures) in facts.columns,
        "kind": facts.has_kind(own_kind, most),
        "listed": given("listed", facts.listed) == facts.listed,
        "noise": given("noise", facts.law) == facts.law,
        "clipped": isinstance(clipped, bool)
        and (clipped if clips else facts.claims_l0 or not clipped)
        and (has_counts if clipped else l0 is None),
        "l0": "l0" not in content or facts.claims_l0 or l0 == (facts.l0 if has_counts else None),
        "summed": facts.has_sums(summed) and (given("summed", summed) is None) == (summed is None),
        "above": "above" not in content or facts.has_threshold(given("above"), has_counts=has_counts),
        "kept_share": given("kept_share") is None or "kept_share" in facts.claims,
        "round": facts.has_round(given("round")),
        "users": facts.has_users(given("users")),
        "calls": facts.steps or _is_one(given("calls", 1)),
        "stopped_early": given("stopped_early", False) is False or facts.steps,
        "spent_rho": "spent_rho" not in content or _is_part(given("spent_rho"), claimed.rho, exact=exact),
        "spent_delta": "spent_delta" not in content or _is_part(given("spent_delta"), claimed.delta, exact=exact),
    }
    if content["version"] == _core.__version__:  # another version may have other words, and a tighter guarantee
        measure = "items by rank" if measures else "items"
        if has_counts:
            bounds = {"l0": facts.l0 or l0, "most": most if type(most) is int else None}
            measure = measure_of(own_kind, clipped=clipped, **bounds, summed=summed, unit=claimed.unit)
        checks |= {
            "guarantee": given("guarantee", claimed.promise) == claimed.promise,
            "measure": given("measure", measure) == measure,
            "most": facts.most is None or "most" in content,
            "rho": claimed.rho <= own.rho * (1 + 1e-9),
            "delta": claimed.delta <= own.delta * (1 + 1e-9),
        }
        checks["summed"] &= ("summed" in content) == (summed is not None)
        checks["l0"] &= not has_counts or facts.l0 is None or l0 == facts.l0
        checks |= dict.fromkeys((name for name in _NOW if name not in content), False)
    wrong = [name for name, is_right in checks.items() if not is_right]
    return ", ".join(wrong) or None


def _is_one(value: object) -> bool:
    return type(value) is int and value == 1


def _is_part(value: object, most: float, *, exact: bool) -> bool:
    if type(value) not in (int, float):
        return False
    return value == most if exact else 0 <= value <= most  # type: ignore[operator]


def _claims(content: untrusted.Fields, facts: Facts, *, is_paid: bool) -> tuple[str, ...]:
    """Return the fields of a certificate that neither its mechanism nor its rows imply, nor the ledger that paid."""
    found = {
        "unit": facts.is_keyed and not is_paid,
        "guarantee": content["version"] != _core.__version__,
        "measure": content["version"] != _core.__version__,
        "spent_rho": facts.steps,
        "spent_delta": facts.steps,
        "calls": facts.steps,
        "stopped_early": facts.steps,
        "clipped": facts.claims_l0 and not facts.clips,
        "kind": facts.may_count_events,
        "most": facts.may_count_events,
        "l0": facts.claims_l0,
        "above": facts.threshold is not None,
        "users": facts.users is not None and not facts.replaced,
        "the column of summed": facts.sums is not None,
    }
    claims = [*(name for name, is_claim in found.items() if is_claim), *facts.claims]
    origin = ("provenance",) if "provenance" in content and not is_paid else ()
    others = (export.plain_text(name) for name in content if name not in _schema()["properties"])
    return ("made_by", "version", "item_type", *claims, "every", "part_of", *origin, "notes", *others)


@cache
def _schema() -> untrusted.Fields:
    """Return the JSON schema of certificates, which has all fields."""
    found: untrusted.Fields = json.loads(Path(__file__).with_name("certificate.schema.json").read_text("utf-8"))
    return found


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
    ledger: str | os.PathLike[str],
    digest: str,
    made_by: str,
    provenance: Provenance | None,
    claimed: Guarantee,
    taken: Collection[int | None],
) -> Spending:
    """Return the charge of the ledger that paid for these rows, and is not among the numbers `taken`, if there is one.

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
    units = {name: opened.dataset(name).guarantee.unit for name in {row.dataset for row in paid}}
    paid = [row for row in paid if units[row.dataset] == claimed.unit]
    if not paid:
        raise InputError(
            f"the ledger {ledger} paid for these rows from a dataset of another unit than {claimed.unit}, which the "
            "certificate says; restore the certificate that was written with these rows"
        )
    # A file without provenance leaves the charges that have one to other files.
    return min(paid, key=lambda row: (row.number in taken, row.begun))


def total_of(found: Sequence[Verified], ledger: str | os.PathLike[str] | None) -> tuple[Guarantee, list[Guarantee]]:
    """Return the sum of the guarantees of verified files, and the costs in it of charges that have none of the files.

    A file that was charged by its epsilon costs what was charged, as the charges without a file do: its guarantee may
    state a rho alone, and the sum of all epsilons would be lost.

    Args:
        found: The files, as `verify_all` verified them with this ledger.
        ledger: The ledger, whose other charges to the datasets that paid count; or None.

    Raises:
        LedgerError: The ledger cannot be read.
        ParameterError: The guarantees have different units, which do not add up.
    """
    given, others = [one.guarantee for one in found], list[Guarantee]()
    if ledger is not None:
        opened = Ledger.open(ledger, create=False)
        accounts = {one.dataset: opened.dataset(one.dataset)._account() for one in found if one.dataset}  # noqa: SLF001 - as it adds up
        rows = {row.number: row for row in opened.history if row.dataset in accounts}
        costs = {number: accounts[row.dataset].cost_of(*row.stated, row.pair) for number, row in rows.items()}
        paid = [(one.guarantee, one.charge) for one in found if one.charge is not None]
        if len(rows) > 1:
            given = [costs[number] if rows[number].pair is not None else own for own, number in paid]
        others = [cost for number, cost in costs.items() if number not in {number for _, number in paid}]
    return sum_of([*given, *others]), others


def sum_of(costs: Sequence[Guarantee]) -> Guarantee:
    """Return the sum of guarantees. Their epsilons are rounded once, so that ten of 0.1 keep a policy of 1.

    Mechanisms cost less than they state by more than this rounding: see docs/decisions/total-and-parts.md.

    Raises:
        ParameterError: The guarantees have different units, which do not add up.
    """
    total = sum(costs[1:], costs[0])
    pairs = [one.dp for one in costs if one.dp is not None]
    return total if total.dp is None else replace(total, dp=(math.fsum(pair[0] for pair in pairs), total.dp[1]))
