"""The verbs: a table in, a Release out; values in, Answers out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from discreet import _core, engines
from discreet.budgets.advice import require
from discreet.budgets.filter import PrivacyFilter
from discreet.errors import ParameterError
from discreet.mechanisms.base import Opening
from discreet.mechanisms.counts.confirmed_counts import ConfirmedCounts
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.published import uncounted
from discreet.mechanisms.top_k.discover_and_peel import DiscoverAndPeel
from discreet.mechanisms.union.set_union import SetUnion, UnionMechanism
from discreet.planning.choose import choose
from discreet.planning.plan import stated
from discreet.privacy.guarantee import Guarantee
from discreet.queries.answers import Answers, require_values
from discreet.queries.choose import choose_answers
from discreet.release.release import Release
from discreet.tables.histogram import Histogram
from discreet.tables.user_items import UserItems

__all__ = ["answer_queries", "count", "select", "top_k"]


def count(
    data: Any,
    *,
    user: str,
    item: str,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    l0: int | None = None,
    relative_error: float = 0.1,
    k_bar: int = 2**14,
    mechanism: HistogramMechanism | None = None,
    budget: PrivacyFilter | None = None,
    memory: int | str | None = None,
    progress: Callable[[], None] | None = None,
) -> Release:
    """How many users have each item, for items that nobody listed in advance.

    `data`: rows of (user, item): a path or glob of Parquet or CSV files, any frame or relation with
    `__arrow_c_stream__` (polars, pandas, pyarrow, DuckDB), a dict of two equally long arrays, a Spark DataFrame or
    an Ibis table. `user` and `item` name its columns, of integers or text. Give `delta` and exactly one of `rho`, the
    cost in delta-approximate rho-zCDP, and `epsilon`, the total (epsilon, delta)-DP promise. A user counts once for
    each item.

    Without `l0` a user may have any number of items, and counts are released to about `relative_error` by
    `ConfirmedCounts`, which looks at the `k_bar` largest. A larger rho then names more items; a smaller
    `relative_error` gives sharper counts of fewer items. With `l0` at most so many items of each user count, chosen
    uniformly, and all noisy counts above a threshold are released, by the mechanism that `plan` finds to name the
    smallest items; the release says which and why. `mechanism`: one that reads a histogram, such as
    `PrivateCountRelease(rho=, delta=)`, in place of the chosen one; its parameters take the place of all of these.
    `budget`, a Budget or a Ledger's dataset, pays for it, once the data was read and before noise is drawn.
    `memory`: bytes, or text such as "2GB", that counting may take; half of the machine's where it is not given. Rows
    that do not fit wait in encrypted temporary files.
    `progress` is called now and then, without numbers: how many rows there are is not public.

    Returns a Release of item, noisy count and sigma. Raises ParameterError, SchemaError, InputError or
    BudgetExceeded before anything is spent.
    """
    parameters = {"l0": l0, "relative_error": relative_error, "k_bar": k_bar}
    given = mechanism is not None
    asked = _Asked("count", rho, epsilon, delta, {**parameters, "mechanism": mechanism} if given else parameters)
    made, reasons = asked.chosen()
    columns: dict[str, Any] = {"user": user, "item": item, "memory": memory, "progress": progress}

    def read() -> Histogram:
        rows: int | None = getattr(made, "rows_needed", None)
        return Histogram.from_table(
            data,
            **columns,
            l0=made.protects.l0,
            k_bar=None if rows is None else rows - 1,
            count_users=isinstance(made, ConfirmedCounts),
        )

    return _publish(made, read, budget, asked, reasons)


def top_k(
    data: Any,
    *,
    user: str,
    item: str,
    k: int,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float,
    k_bar: int = 1_000,
    method: str = "gumbel",
    l0: int | None = None,
    budget: PrivacyFilter | None = None,
    memory: int | str | None = None,
    progress: Callable[[], None] | None = None,
) -> Release:
    """The `k` items that most users have, in order and without counts; fewer where the rest is not safe to name.

    By `GumbelTopK` over the `k_bar` largest counts (Rogers 2023, Algorithm 3). A user may have any number
    of items. With `method="discover+peel"` by `DiscoverAndPeel`, which finds the items first, with at most `l0` of
    each user. The other parameters and the errors are those of `count`.

    Returns a Release of item and rank.
    """
    asked = _Asked("top_k", rho, epsilon, delta, {"k": k, "k_bar": k_bar, "method": method, "l0": l0})
    mechanism, notes = asked.chosen()
    if isinstance(mechanism, DiscoverAndPeel):
        columns: dict[str, Any] = {"user": user, "item": item, "memory": memory, "progress": progress}
        release = _read_twice(mechanism, data, budget, asked, **columns)
        return replace(release, notes=(*release.notes, *notes))

    def read() -> Histogram:
        return Histogram.from_table(data, user=user, item=item, k_bar=k_bar, memory=memory, progress=progress)

    return _publish(mechanism, read, budget, asked, notes)


def select(
    data: Any,
    *,
    user: str,
    item: str,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float,
    l0: int,
    method: str = "auto",
    budget: PrivacyFilter | None = None,
    memory: int | str | None = None,
    progress: Callable[[], None] | None = None,
) -> Release:
    """The items that can be named, without counts.

    At most `l0` items of each user count, chosen uniformly. `method`: "threshold" is `OptimalSelection` (Desfontaines
    et al. 2020) or a threshold mechanism whose counts are left out, whichever `plan` finds to name the smaller items;
    "dp_sips" is `IteratedSetUnion`; "weighted_gaussian", "weighted_laplace", "policy_gaussian", "policy_laplace",
    "greedy" and "adaptive_gaussian" are those of `SetUnion`. "auto" is the first for one item of a user, "greedy" for
    up to about ten under a stated epsilon and "dp_sips" for more, from the promise and l0 alone; the release says which
    and why. On a Spark DataFrame or an Ibis table "threshold", "dp_sips", "weighted_gaussian" and "weighted_laplace"
    can be done, and "auto" is one of these. The other parameters and the errors are those of `count`; a set union needs
    memory for all items of all users, and raises ResourceError where `memory` is not enough.

    Returns a Release of items, in their own order.
    """
    here = engines.rows_here(data)
    asked = _Asked("select", rho, epsilon, delta, {"l0": l0, "method": method, "rows_here": here})
    mechanism, reasons = asked.chosen()

    def read() -> Histogram | UserItems:
        columns: dict[str, Any] = {"user": user, "item": item, "memory": memory, "progress": progress}
        if isinstance(mechanism, UnionMechanism):
            kept = mechanism.l0 if isinstance(mechanism, SetUnion) else None
            return UserItems.from_table(data, **columns, l0=kept)
        return Histogram.from_table(data, **columns, l0=l0, cap=mechanism.cap)

    return _publish(mechanism, read, budget, asked, reasons, without_counts=True)


def answer_queries(
    values: Any,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float,
    method: str = "auto",
    budget: PrivacyFilter | None = None,
    rng: _core.Rng | None = None,
) -> Answers:
    """Answers many counting queries at once, so that the largest error is small.

    `values`: a list or one-dimensional array of whole numbers, each of which one user moves by at most one, up or down;
    one user may move all of them. Give exactly one of `rho`, the cost in zCDP, and `epsilon`, the total
    (epsilon, delta)-DP promise; `delta=0` is for methods that need none, "laplace" by epsilon. `method`: "gaussian",
    "laplace", "bounded" (no error is ever beyond the bound), "gumbel_correction", "iterative_sparse_vector",
    "sparse_vector_correction", "guarded_correction", or "auto", which takes the one with the smallest expected largest
    error, from the number of queries, the promise and delta alone, and says so. How many queries there are is public.
    `budget`, a Budget or a Ledger's dataset, pays for it before noise is drawn. `rng` is for tests, without a budget.

    Returns Answers: values, error_bound, guarantee. Raises ParameterError for values of other types, an unknown
    method or parameters out of range, BudgetExceeded where the budget does not pay.
    """
    whole = require_values(values)
    mechanism, notes = choose_answers(len(whole), rho, epsilon, delta, method)
    if budget is None:
        return replace(mechanism.release(whole, rng=rng), notes=notes)
    _require_budget(budget)
    require(budget, mechanism, lambda e, d: choose_answers(len(whole), None, e, d, method)[0], epsilon, delta)
    if rng is not None:
        raise ParameterError("a budget takes no seeded randomness: leave out rng, or the budget")
    answers: Any = budget.release(mechanism, whole)
    paid: Answers = replace(answers, notes=notes)
    return paid


@dataclass(frozen=True, slots=True)
class _Asked:
    """A verb with the promise and the parameters that the caller gave."""

    verb: str
    rho: float | None
    epsilon: float | None
    delta: float | None
    parameters: dict[str, Any]

    def chosen(self) -> tuple[Any, tuple[str, ...]]:
        """The mechanism of these parameters, and notes on the choice."""
        if "mechanism" in self.parameters:
            others = dict(self.parameters)
            return _given(others.pop("mechanism"), (self.rho, self.epsilon, self.delta), others)
        if self.delta is None:
            raise ParameterError("give delta, the chance that the promise may fail: far below 1 / users")
        return choose(self.verb, rho=self.rho, epsilon=self.epsilon, delta=self.delta, **self.parameters)

    def guarantee(self, mechanism: Any) -> Guarantee:
        """The guarantee of the mechanism, as it was asked for."""
        return stated(mechanism, self.epsilon, self.delta)

    def require_paid(self, budget: PrivacyFilter, mechanism: Any) -> None:
        """Raise BudgetExceeded, with advice in epsilon where that was given, unless the budget pays."""
        _require_budget(budget)
        require(
            budget,
            mechanism,
            lambda epsilon, delta: replace(self, epsilon=epsilon, delta=delta).chosen()[0],
            self.epsilon,
            self.delta,
        )


def _given(
    mechanism: object, promised: tuple[object, ...], parameters: dict[str, object]
) -> tuple[object, tuple[str, ...]]:
    """The mechanism of the caller's, where nothing contradicts it."""
    if not isinstance(mechanism, HistogramMechanism):
        raise ParameterError("mechanism must be one that releases a histogram, such as PrivateCountRelease")
    if promised != (None, None, None):
        raise ParameterError("with mechanism leave out rho, epsilon and delta: it has its own")
    if parameters != {"l0": None, "relative_error": 0.1, "k_bar": 2**14}:
        raise ParameterError("with mechanism leave out l0, relative_error and k_bar: it has its own")
    return mechanism, ()


def _read_twice(
    mechanism: DiscoverAndPeel, data: Any, budget: PrivacyFilter | None, asked: _Asked, **columns: Any
) -> Release:
    """The release of a mechanism that reads the table itself."""
    if budget is None:
        return mechanism.release(data, **columns)
    asked.require_paid(budget, mechanism)
    return budget._publish(mechanism, lambda rng: mechanism.release(data, rng=rng, **columns))


def _require_budget(budget: object) -> None:
    if not isinstance(budget, PrivacyFilter):
        raise ParameterError("budget must be a Budget or a dataset of a Ledger")


def _publish(
    mechanism: Any,
    read: Callable[[], Histogram | UserItems],
    budget: PrivacyFilter | None,
    asked: _Asked,
    reasons: tuple[str, ...],
    *,
    without_counts: bool = False,
) -> Release:
    """The release of the histogram that `read` makes, as the caller asked for it, paid for by `budget`."""
    if budget is not None:
        asked.require_paid(budget, mechanism)  # nothing is read that cannot be paid for
    histogram, guarantee = read(), asked.guarantee(mechanism)

    def draw(rng: Opening | None = None) -> Release:
        release: Release = mechanism.release(histogram, rng=rng)
        if without_counts:
            release = replace(uncounted(release), items=sorted(release.items))
        return replace(release, guarantee=guarantee, notes=(*release.notes, *reasons))

    return draw() if budget is None else budget._publish(mechanism, draw)
