"""The functions of the package: count, top_k and select release rows of a table; answer_queries answers queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypeVar, Unpack

from discreet import budgets, engines, queries
from discreet.engines.engine import Label
from discreet.errors import ParameterError
from discreet.mechanisms.fewest import Notes
from discreet.mechanisms.from_histogram import HistogramMechanism
from discreet.mechanisms.from_table import TableMechanism
from discreet.mechanisms.parameters import RELATIVE_ERROR
from discreet.planning.choose import choose
from discreet.planning.public_items import for_public_items, public_top_k
from discreet.privacy.guarantee import Promising, unusual
from discreet.privacy.validation import require_whole
from discreet.releasing import (
    Asked,
    Call,
    Options,
    bounding,
    given,
    is_bounding,
    publish,
    quoted_at,
    require_budget,
    require_known,
    required,
    with_options,
)

if TYPE_CHECKING:
    from discreet import _core
    from discreet.budgets.filter import PrivacyFilter
    from discreet.mechanisms.base import Opening
    from discreet.mechanisms.composed.discover_and_peel import DiscoverAndPeel
    from discreet.mechanisms.union.set_union import UnionMechanism
    from discreet.queries.answers import Answers
    from discreet.release.release import Release

__all__ = ["answer_queries", "count", "select", "top_k"]

_Made = TypeVar("_Made", bound=Promising)


@with_options
def count(
    data: object,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    l0: int | Literal["auto"] | None = None,
    kept_share: bool = False,
    relative_error: float = RELATIVE_ERROR,
    mechanism: HistogramMechanism | TableMechanism | None = None,
    items: Sequence[Label] | None = None,
    others: bool = False,
    budget: PrivacyFilter | None = None,
    charge: Literal["guarantee", "spent"] = "guarantee",
    **options: Unpack[Options],
) -> Release:
    """Release how many users have each item, for items whose labels are not known in advance.

    A user counts once for each item, and without `l0` may have any number of items. `CalibratedCounts` then confirms
    the common items to about `relative_error`, and estimates the counts of many rarer ones; `Release.methods` says
    which is which, and `Release.within(0.1)` keeps the counts with a sigma of at most 10 %. With `l0`, at most l0 items
    of each user count, chosen uniformly. A threshold mechanism then releases all items whose noisy counts exceed its
    threshold. If all users have one item, `l0=1` is best below about 8,000/sqrt(rho) users, and no better above. `plan`
    says which mechanism is chosen and why, without data.

    Args:
        data: A `Table`, or the rows that a Table takes.
        items: Items that are public, such as the pages of a site map: all of them are counted without a threshold, even
            items that no user has. Without `l0`, a user may have all of them, and all counts share a part of their
            noise. Items of several columns are `tuples`, and the mechanism is `CorrelatedCounts`.
        others: Whether other items are released too, as without `items`. Without `l0`, half of rho then counts the
            public items. With `l0`, it bounds the items of a user among all items, so counts of public items are lower
            too. Only with `items`. The mechanism without `l0` is `CountsWithPublicItems`.
        rho: The privacy cost, in delta-approximate rho-zCDP. Give exactly one of `rho` and `epsilon`.
        epsilon: The total (epsilon, delta)-DP guarantee; with `items` and without `delta`, of pure epsilon-DP.
        delta: The probability that the guarantee fails; far below one over the number of users. With `items` alone it
            is never charged, and may be left out. A given one is the delta at which a guarantee in zCDP is stated as
            (epsilon, delta)-DP.
        l0: The most items of a user that count, with a threshold mechanism; any number by default. "auto" finds a bound
            with privacy: a number of items that about 95 percent of the users do not exceed. The table is then read
            twice. `CountsWithFoundBound` has more parameters, `Release.l0` is the bound, and `Release.kept_share` is
            what it kept.
        kept_share: Whether to estimate the share of (user, item) pairs that a number `l0` keeps, for 1 % of rho, or 5 %
            of epsilon. The table is read twice. `l0="auto"` includes it. It is `Release.kept_share` of the mechanism
            `CountsWithShare`.
        relative_error: The target error of a confirmed count, as a fraction of the count: from 0.005 to below 1, and
            0.1 by default. The sigma is usually about 0.475 times this error, and about 8 % of the count for fractions
            above 0.17. A smaller value confirms fewer items. Only without `l0`.
        mechanism: A mechanism that reads a histogram or a table, such as `PrivateCountRelease(rho=1, delta=1e-6)`,
            instead of the chosen one. Leave out rho, epsilon, delta, l0, kept_share and relative_error then.
        budget: A `Budget` or a `Ledger`'s dataset. It is charged after the data was read and before noise is drawn.
        charge: Whether the budget is charged the whole guarantee, or only the steps that the release made ("spent").
            Either way the whole guarantee must fit into the budget.
        **options: The columns of rows, and what a ledger remembers of the charge.

    Returns:
        A Release of items, counts and the standard deviation (sigma) of each count's error; with `l0`, of its noise
        alone, without what clipping loses.

    Raises:
        ParameterError: A parameter is missing or out of range.
        SchemaError: A column is missing, or has a type that users and items cannot have, such as floats.
        InputError: The data cannot be read.
        BudgetExceeded: The budget is insufficient. An error before the charge costs nothing.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000)] * 2, "page": ["home"] * 5000 + ["help"] * 5000}
        >>> release = dp.count(log, user="user", item="page", rho=1, delta=1e-6)
        >>> sorted(release.items)
        ['help', 'home']
    """

    parameters: dict[str, object] = {"rho": rho, "epsilon": epsilon, "delta": delta, "l0": l0, "items": items}
    parameters |= {"kept_share": kept_share, "relative_error": relative_error, "mechanism": mechanism, "others": others}
    call = Call.of(count, data, options, budget, parameters, charge)
    table = call.table
    bounds = is_bounding(parameters)
    most = None if isinstance(l0, str) else l0
    listed = require_known(items, others=others, l0=most, mechanism=mechanism)
    table = table._changed(listed=listed)  # no cell of a list decides whether the types fit
    is_public = listed is not None and not others

    def chosen(epsilon: float | None, delta: float | None) -> tuple[HistogramMechanism | TableMechanism, Notes]:
        if bounds:
            return bounding(l0, rho, epsilon, required(delta), listed)
        if mechanism is not None:
            return given(mechanism, (rho, epsilon, delta), {"l0": l0, "relative_error": relative_error})
        if listed is None:
            return choose(
                "count",
                rho=rho,
                epsilon=epsilon,
                delta=required(delta),
                l0=most,
                relative_error=relative_error,
            )
        return for_public_items(
            listed,
            others=others,
            rho=rho,
            epsilon=epsilon,
            delta=delta,
            l0=most,
            relative_error=relative_error,
            counts_users=engines.counts_users(table.data),
        )

    asked, made, reasons = _chosen(chosen, (rho, epsilon, delta), is_public=is_public)
    return publish(made, replace(call, table=table), asked, reasons, only=listed if is_public else None)


def _chosen(
    choose: Callable[[float | None, float | None], tuple[_Made, Notes]],
    promised: tuple[float | None, float | None, float | None],
    *,
    is_public: bool,
) -> tuple[Asked[_Made], _Made, Notes]:
    """Return the request, the mechanism for it and the notes on the choice."""
    asked = Asked(choose, *promised, quoted_at(*promised[1:], is_public=is_public))
    made, notes = asked.chosen()
    return asked, made, (*notes, *unusual(asked.guarantee(made))) if is_public else notes


@with_options
def top_k(
    data: object,
    *,
    k: int,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    k_bar: int = 1_000,
    method: Literal["gumbel", "discover+peel"] = "gumbel",
    l0: int | None = None,
    items: Sequence[Label] | None = None,
    budget: PrivacyFilter | None = None,
    charge: Literal["guarantee", "spent"] = "guarantee",
    **options: Unpack[Options],
) -> Release:
    """Release the `k` items that most users have, ranked and without counts.

    The release has fewer items if other items cannot be released safely. `GumbelTopK` selects the items among the
    `k_bar` most common ones (Rogers 2023, Algorithm 3). A user may have any number of items. With `items`, which are
    public, `ExponentialMechanism` ranks exactly k of them, and no delta is needed.

    Args:
        data: A `Table`, or the rows that a Table takes.
        k: The most items to release.
        rho: The privacy cost, in zCDP. Give exactly one of `rho` and `epsilon`.
        epsilon: The total (epsilon, delta)-DP guarantee; with `items` and without `delta`, of pure epsilon-DP.
        delta: The probability that the guarantee fails; far below one over the number of users. With `items` it may be
            left out, as in a count.
        k_bar: Consider only this many of the most common items (k-bar).
        method: How to find the items: "gumbel" ranks the most common items, and "discover+peel" first finds items by a
            set union, then ranks them. The mechanism of "discover+peel" is `DiscoverAndPeel`.
        l0: The most items of a user that "discover+peel" uses to find items.
        items: Items that are public, such as the pages of a site map; the k items are among them.
        budget: A `Budget` or a `Ledger`'s dataset.
        charge: Whether the budget is charged the whole guarantee, or only the steps that the release made ("spent").
        **options: The columns of rows, and what a ledger remembers of the charge.

    Returns:
        A Release of items; its rows are ranks 1, 2, 3 and so on.

    Raises:
        ParameterError: A parameter is missing or out of range. The other errors are the same as in `count`.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000), *range(3000)], "page": ["home"] * 5000 + ["help"] * 3000}
        >>> dp.top_k(log, user="user", item="page", k=2, rho=1, delta=1e-6).items
        ['home', 'help']
    """

    parameters: dict[str, object] = {"rho": rho, "epsilon": epsilon, "delta": delta, "l0": l0, "items": items}
    parameters |= {"k": k, "k_bar": k_bar, "method": method}
    call = Call.of(top_k, data, options, budget, parameters, charge)
    listed = require_known(items, others=False, l0=l0, mechanism=None)
    if listed is not None and (k_bar, method, l0) != (1_000, "gumbel", None):
        raise ParameterError.about("{items} excludes {k_bar}, {method} and {l0}: leave out these, or items")

    def chosen(epsilon: float | None, delta: float | None) -> tuple[HistogramMechanism | DiscoverAndPeel, Notes]:
        if listed is not None:
            return public_top_k(listed, k=k, rho=rho, epsilon=epsilon, delta=delta)
        return choose("top_k", rho=rho, epsilon=epsilon, delta=required(delta), k=k, k_bar=k_bar, method=method, l0=l0)

    asked, mechanism, notes = _chosen(chosen, (rho, epsilon, delta), is_public=listed is not None)
    told = () if isinstance(mechanism, TableMechanism) else None
    return publish(mechanism, call, asked, notes, only=listed, told=told)


@with_options
def select(
    data: object,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float,
    l0: int | None = None,
    method: Literal[
        "auto",
        "threshold",
        "dp_sips",
        "weighted_gaussian",
        "weighted_laplace",
        "policy_gaussian",
        "policy_laplace",
    ] = "auto",
    budget: PrivacyFilter | None = None,
    charge: Literal["guarantee", "spent"] = "guarantee",
    **options: Unpack[Options],
) -> Release:
    """Release the items that enough users have, without counts.

    Without `l0`, a user may have any number of items: "dp_sips" uses up to 100 of them, which share one weight. With
    `l0`, at most l0 items of each user count, chosen uniformly. "auto" takes a threshold for `l0=1`, which is best if
    users have one item. For a larger l0 it takes "policy_laplace" if epsilon is given and l0 is at most about three.
    Otherwise it takes "dp_sips", or a threshold if "dp_sips" could need far more users for an item. The choice depends
    only on the guarantee, l0 and the kind of table. The release says what was chosen and why.

    Args:
        data: A `Table`, or the rows that a Table takes.
        rho: The privacy cost, in zCDP. Give exactly one of `rho` and `epsilon`.
        epsilon: The total (epsilon, delta)-DP guarantee.
        delta: The probability that the guarantee fails; far below one over the number of users.
        l0: The most items of a user that count; 100 by default. 1 is best if users have one item.
        method: The mechanism: "threshold" selects items by their counts; all other methods but "auto" are set unions.
            "threshold" takes `OptimalSelection` (Desfontaines et al. 2020) or a threshold mechanism without its counts,
            whichever releases items of fewer users. "dp_sips" is `IteratedSetUnion`, and the others are methods of
            `SetUnion`. Spark and Ibis support "threshold", "dp_sips" and the weighted methods.
        budget: A `Budget` or a `Ledger`'s dataset.
        charge: Whether the budget is charged the whole guarantee, or only the steps that the release made ("spent").
        **options: The columns of rows, and what a ledger remembers of the charge.

    Returns:
        A Release of items, sorted by item.

    Raises:
        ParameterError: A parameter is missing or out of range, or the table does not support the method.
        ResourceError: The folder for temporary files is full. The other errors are the same as in `count`.

    Example:
        >>> import discreet as dp
        >>> log = {"user": [*range(5000)] * 2, "page": ["home"] * 5000 + ["help"] * 5000}
        >>> dp.select(log, user="user", item="page", epsilon=1, delta=1e-6).items
        ['help', 'home']
    """
    parameters: dict[str, object] = {"rho": rho, "epsilon": epsilon, "delta": delta, "l0": l0, "method": method}
    call = Call.of(select, data, options, budget, parameters, charge)
    table = call.table
    here = engines.rows_here(table.data)

    def chosen(epsilon: float | None, delta: float | None) -> tuple[HistogramMechanism | UnionMechanism, Notes]:
        return choose("select", rho=rho, epsilon=epsilon, delta=required(delta), l0=l0, method=method, rows_here=here)

    asked = Asked(chosen, rho, epsilon, delta)
    mechanism, reasons = asked.chosen()
    return publish(mechanism, call, asked, reasons, without_counts=True)


def answer_queries(
    values: object,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float,
    method: str = "auto",
    sensitivity: int = 1,
    budget: PrivacyFilter | None = None,
    rng: _core.Rng | None = None,
) -> Answers:
    """Answer many counting queries at once, with a small largest error.

    One user changes the true answer of each query by at most `sensitivity`, up or down, and may change all true
    answers. The number of queries is public. Answers with a sensitivity above one are rounded to steps of it.

    Args:
        values: A list or one-dimensional array of whole numbers: the true answers.
        rho: The privacy cost, in zCDP. Give exactly one of rho and epsilon.
        epsilon: The total (epsilon, delta)-DP guarantee.
        delta: The probability that the guarantee fails; 0 for methods that need none, such as "laplace" with epsilon.
        method: "gaussian", "laplace", "bounded" (no error exceeds `error_bound`), "gumbel_correction",
            "iterative_sparse_vector"; or "auto", which takes the one of the first four with the smallest expected
            largest error. The choice depends only on the number of queries and the guarantee.
        sensitivity: The most that one user changes one true answer: a whole number from 1 to 2^20.
        budget: A `Budget` or a `Ledger`'s dataset. It is charged before noise is drawn.
        rng: Seeded randomness for tests (`discreet.testing.seeded_rng`); not with a budget.

    Returns:
        Answers. `values` has the noisy answers; `error_bound`, `expected_error` and `guarantee` describe them.

    Raises:
        ParameterError: The values are not whole numbers, the method is unknown or a parameter is out of range.
        BudgetExceeded: The budget is insufficient.

    Example:
        >>> import discreet as dp
        >>> answers = dp.answer_queries([1200, 340, 77], epsilon=1, delta=1e-6)
        >>> len(answers.values)
        3
    """
    step = require_whole("sensitivity", sensitivity, 1, queries.MOST_STEP)
    # A change of at most `step` moves the multiple below a value by at most one.
    whole = queries.require_values(values) // step
    mechanism, notes = queries.choose_answers(len(whole), rho, epsilon, delta, method, step)

    def draw(rng: _core.Rng | Opening | None) -> Answers:
        return queries.in_steps(replace(mechanism.release(whole, rng=rng), notes=notes), step)

    if budget is None:
        return draw(rng)
    require_budget(budget)
    budgets.require(
        budget, mechanism, lambda e, d: queries.choose_answers(len(whole), None, e, d, method)[0], epsilon, delta
    )
    if rng is not None:
        raise ParameterError("rng is for tests: a budget takes no seeded randomness; leave out rng, or the budget")
    return budget.publish(mechanism, draw, by_rho=rho is not None)
