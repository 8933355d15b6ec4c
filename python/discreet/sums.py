"""The functions `sum` and `aggregate` of the package: private sums of columns, and more numbers, for each item."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Literal, Unpack

from discreet import mechanisms
from discreet.engines.engine import Label
from discreet.engines.projection import FINE, exact_step
from discreet.engines.sums import own_step, summed_column
from discreet.errors import Parameter, ParameterError
from discreet.mechanisms.base import FromEpsilon, made_for
from discreet.mechanisms.composed.clipped_sums import SKIPPED
from discreet.mechanisms.fewest import Notes
from discreet.mechanisms.parameters import PERCENTILE
from discreet.mechanisms.steps.measured import FEWEST
from discreet.privacy.conversion import cdp_rho, round_down
from discreet.privacy.guarantee import require_one, require_promise, unusual
from discreet.privacy.validation import brief, is_zero, require_number, require_whole
from discreet.releasing import Asked, Call, Options, publish, quoted_at, require_known, required, with_options

if TYPE_CHECKING:
    from discreet.budgets.filter import PrivacyFilter
    from discreet.engines.table import Table
    from discreet.engines.typed_arrays import Foreign
    from discreet.mechanisms.steps.base import Steps
    from discreet.release.release import Release

__all__ = ["aggregate", "sum"]

_FREE: tuple[list[object], ...] = [], [None, None]
"""Bounds of a column without bounds."""
_SKIPPED_VALUES = "cells that are no finite numbers, such as dates or 3,50, count as rows without a value"


@with_options
def sum(  # noqa: A001 - the name of the command, and of SQL
    data: object,
    *,
    value: str | None = None,
    bounds: tuple[float | Decimal, float | Decimal] | Literal["auto"] | None = None,
    bounds_percentile: int = PERCENTILE,
    l0: int | None = None,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    resolution: float | Decimal | None = None,
    items: Sequence[Label] | None = None,
    budget: PrivacyFilter | None = None,
    **options: Unpack[Options],
) -> Release:
    """Release the sum of a column for each item, for items whose labels are not known in advance.

    Without `bounds` and `l0` nothing needs to be chosen: the release has counts of users and a column of sums, each
    with its sigma, as `aggregate(sums=[value])` has it (`CalibratedAggregates`). The rest of this text is about bounds.

    A user's own values for an item are added up, and this sum is clipped to `bounds`. At most `l0` items of each user
    count, chosen uniformly, so the noise of a sum is that of l0 items, not of all. Half of rho finds the items with a
    threshold on their users, and the other half pays for the sums (`DiscoverAndSum`). Without `l0`, 5 % of rho first
    finds a bound that about 95 % of the users do not exceed, and `Release.l0` has it. The released sums are in the unit
    of the column. Files and frames call them after it: price_sum and price_sum_sigma.

    With `bounds="auto"`, 5 % of rho first finds bounds [-c, c]: for about `bounds_percentile` percent of the users, the
    sum for one of their items, chosen at random, lies within (`SumsWithFoundBounds`). `Release.summed` has them.

    Values are added up exactly, as whole numbers of a step: integers and booleans as they are, decimals in the places
    of their type, floats and text in steps of 2^-32. The type of the column decides it, and no cell does.

    Args:
        data: A `Table` with a value, or the rows that a Table takes. They are read twice, or once with `items`; once
            more for each bound that is found.
        value: The column to sum: numbers, booleans, or text that holds numbers in ASCII digits; of Spark or Ibis
            numbers or booleans. A row whose value is missing, not finite or no number is left out.
        bounds: The least and the largest sum of one user for one item, in the unit of the column. Choose them without
            the data. The noise grows with the larger absolute value. The text `"auto"` finds bounds with privacy.
            Without bounds and without l0 nothing is clipped.
        bounds_percentile: The percentage of users, from 1 to 99, for whom the sum for one of their items, chosen at
            random, lies within bounds that are found with 5 % of rho. It is for bounds that are `"auto"`.
        l0: The most items of a user that count; by default a bound is found with 5 % of rho, which about 95 % of the
            users do not exceed. With `items`, a user may have all of them by default. It needs bounds.
        rho: The privacy cost, in delta-approximate rho-zCDP. Give exactly one of `rho` and `epsilon`.
        epsilon: The total (epsilon, delta)-DP guarantee.
        delta: The probability that the guarantee fails; far below one over the number of users. May be left out with
            `rho` and `items`: their guarantee in zCDP has no delta. A given delta is then the one at which the
            guarantee is stated as (epsilon, delta)-DP.
        resolution: A step to which each value is rounded, halves to even, such as 0.01, in place of that of the column:
            1 for integers, the places of a decimal type, else 2^-32. Bounds are whole multiples of it. It lies from
            1e-12 to 1e12.
        items: Items that are public: a sum is released for each of them, without a threshold. The mechanism is
            `ClippedSums`.
        budget: A `Budget` or a `Ledger`'s dataset, as in `count`.
        **options: The columns of rows, and what a ledger remembers of the charge.

    Returns:
        A Release whose `counts` are noisy sums in the unit of the column, and whose `sigmas` are in the same unit.
        Without bounds, `counts` are numbers of users, and `aggregates` has the sums.

    Raises:
        ParameterError: A parameter is missing or out of range. Nothing is charged.
        SchemaError: A column is missing, or has another type.
        InputError: The data cannot be read.
        BudgetExceeded: The budget is insufficient. An error before the charge costs nothing.

    Example:
        >>> import discreet as dp
        >>> sales = {"user": [*range(5000)], "shop": ["a"] * 5000, "price": [19.99] * 5000}
        >>> columns = {"user": "user", "item": "shop", "value": "price"}
        >>> release = dp.sum(sales, **columns, bounds=(0, 20), l0=1, rho=1, delta=1e-6)
        >>> release.items, bool(99_000 < release.counts[0] < 101_000)
        (['a'], True)

    Source:
        Desfontaines et al. (2020), Section 1, and Rogers (2023), Theorems 4, 6 and 7; see `DiscoverAndSum`.
    """
    parameters: dict[str, object] = {"rho": rho, "epsilon": epsilon, "delta": delta, "l0": l0, "items": items}
    parameters |= {"bounds": bounds, "resolution": resolution, "bounds_percentile": bounds_percentile}
    call = Call.of(sum, data, options, budget, parameters, value=value)
    require_one(rho, epsilon)
    summed_column(call.table)
    if bounds is None:
        if l0 is not None:
            raise ParameterError.about("{l0} needs {bounds}: give both, or leave out {l0}")
        if bounds_percentile != PERCENTILE:
            raise ParameterError.about('{bounds_percentile} is for {bounds:"auto"}: leave it out')
        parameters["bounds"] = None
        given: list[object] = [] if resolution is None else [None, None, resolution]
        wanted = {str(call.table.value): given}
        plain = replace(call, table=call.table.without_value())
        return _calibrated(plain, items, (rho, epsilon, delta), rows=False, sums=wanted, means={})
    is_found = isinstance(bounds, str) and bounds == "auto"
    require_whole("bounds_percentile", bounds_percentile, 1, 99)
    if not (is_found or bounds_percentile == PERCENTILE):
        raise ParameterError.about('{bounds_percentile} is for {bounds:"auto"}: leave it out')
    low, high, step = _in_steps(
        (0, 0) if is_found else bounds, resolution, call.table, call.table.value, is_found=is_found
    )
    listed = require_known(items, others=False, l0=l0, mechanism=None)
    note = SKIPPED if listed is None else f"{SKIPPED}: a sum of such cells is noise alone"
    limits = {"l0": l0, "resolution": step}
    if is_found:
        found = mechanisms.SumsWithFoundBounds
        limits["percentile"] = bounds_percentile
        return _released(call, (found, partial(found, delta=None)), listed, (rho, epsilon, delta), limits, (note,))
    limits |= {"low": low, "high": high}
    kinds = mechanisms.DiscoverAndSum, mechanisms.ClippedSums
    return _released(call, kinds, listed, (rho, epsilon, delta), limits, (note,))


def _released(
    call: Call,
    kinds: tuple[FromEpsilon[Steps], Callable[..., Steps]],
    listed: tuple[Label, ...] | None,
    promised: tuple[float | None, float | None, float | None],
    limits: Mapping[str, object],
    notes: Notes,
) -> Release:
    """Return the release of a mechanism that finds items, or of one for listed items: the two kinds."""
    rho, epsilon, delta = promised

    def chosen(epsilon: float | None, delta: float | None) -> tuple[Steps, Notes]:
        if listed is None:
            return made_for(kinds[0], rho, epsilon, delta=required(delta), **limits), ()
        return kinds[1](rho=_listed_rho(rho, epsilon, delta), items=listed, **limits), ()

    asked = Asked(chosen, rho, epsilon, delta, quoted_at(epsilon, delta, is_public=listed is not None))
    made, _ = asked.chosen()
    return publish(made, call, asked, (*notes, *unusual(asked.guarantee(made))))


def _listed_rho(rho: float | None, epsilon: float | None, delta: float | None) -> float:
    """Return the rho of numbers of listed items, which have no delta: all of it goes to the conversion from zCDP.

    Both are rounded down, so that the guarantee implies this epsilon in spite of its own roundings.
    """
    total = 1e-6 if epsilon is None and (delta is None or is_zero(delta)) else required(delta)
    own, epsilon, total = require_promise(rho, epsilon, total)
    if epsilon is not None:
        own = round_down(cdp_rho(epsilon, round_down(total, 64)), 64)
    assert own is not None
    return own


@with_options
def aggregate(
    data: object,
    *,
    rows: bool | int | None = None,
    sums: Mapping[str, Sequence[float | Decimal] | None] | Sequence[str] | None = None,
    means: Mapping[str, Sequence[float | Decimal] | None] | Sequence[str] | None = None,
    l0: int | None = None,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float | None = None,
    items: Sequence[Label] | None = None,
    budget: PrivacyFilter | None = None,
    **options: Unpack[Options],
) -> Release:
    """Release counts of users and of rows, sums and means of columns for each item, in one list at one price.

    Nothing needs to be chosen: `rows=True`, and names of columns in `sums` and `means`. Half of rho names the items and
    estimates their numbers of users as `count` does, and the rest measures all other numbers at once
    (`CalibratedAggregates`). A user may have any number of items, rows and values. Sigma includes what was cut from
    users with much, so far as it shows. The rest of this text is about `l0` and bounds, which clip each user instead.

    The noisy counts of users select the items, with a threshold, so their labels need not be known in advance. All
    numbers of an item are about the same users: at most `l0` items of each user count, chosen uniformly once. Every
    number has an equal part of rho, a mean two of them (`Aggregates`). Without `l0`, 5 % of rho first finds a bound
    that about 95 % of the users do not exceed, and `Release.l0` has it.

    Choose all bounds without the data. The numbers leave out the rest of the data, and no sigma includes that.

    Args:
        data: A `Table`, or the rows that a Table takes. They are read once for each column of values. A cell of it that
            is no number drops no row: its user and its row count.
        rows: The most rows of a user for an item that count, for the number of rows and for means with bounds, which
            need it. Choose it without the data. Without bounds, it is `True` for numbers of rows.
        sums: The columns to add up, each with the least and the largest sum of one user for one item, in the unit of
            the column. Choose them without the data. They are a `dict`, such as `{"price": (0, 50)}`. A third number is
            a resolution in place of the column's own step, as in `sum()`: `{"price": (0, 50, 0.01)}`. Bounds are whole
            multiples of it, and values are rounded to it. Without bounds, they are a `list` of names.
        means: The columns to average over rows, each with the least and the largest mean of one user for one item, in
            the unit of the column. Choose them without the data. They are a `dict` as that of `sums`, and may have a
            resolution. Without bounds, they are a `list` of names.
        l0: The most items of a user that count, the same ones for all numbers; by default a bound is found with 5 % of
            rho, which about 95 % of the users do not exceed. With `items`, a user may have all of them by default.
        rho: The privacy cost of all numbers together, in delta-approximate rho-zCDP. Give exactly one of `rho` and
            `epsilon`.
        epsilon: The total (epsilon, delta)-DP guarantee.
        delta: The probability that the guarantee fails; far below one over the number of users. May be left out with
            `rho` and `items`: their guarantee in zCDP has no delta. A given delta is then the one at which the
            guarantee is stated as (epsilon, delta)-DP.
        items: Items that are public: numbers are released for each of them, without a threshold.
        budget: A `Budget` or a `Ledger`'s dataset, as in `count`.
        **options: The columns of rows, and what a ledger remembers of the charge.

    Returns:
        A Release of counts of users whose `aggregates` are the other numbers. Files and frames have a column for each
        number and its sigma: rows, rows_sigma, price_sum, price_sum_sigma, price_mean and so on, in the unit of the
        column.

    Raises:
        ParameterError: A parameter is missing or out of range. Nothing is charged.
        SchemaError: A column is missing, or has another type.
        InputError: The data cannot be read.
        BudgetExceeded: The budget is insufficient. An error before the charge costs nothing.

    Example:
        >>> import discreet as dp
        >>> sales = {"user": [*range(5000)] * 2, "shop": ["a"] * 10_000, "price": [19.99] * 10_000}
        >>> bounds = {"rows": 2, "sums": {"price": (0, 50)}, "means": {"price": (0, 30)}}
        >>> release = dp.aggregate(sales, user="user", item="shop", **bounds, l0=1, rho=1, delta=1e-6)
        >>> rows, total, mean = release.aggregates
        >>> rows.name, bool(9_900 < rows.values[0] < 10_100), total.name, mean.name, bool(19 < mean.values[0] < 21)
        ('rows', True, 'price_sum', 'price_mean', True)

    Source:
        Rogers (2023), Theorems 4, 6 and 7, and Desfontaines et al. (2020), Section 1; see `Aggregates`.
    """
    values = dict.fromkeys((*_bounds("sums", sums), *_bounds("means", means)))
    parameters: dict[str, object] = {"rho": rho, "epsilon": epsilon, "delta": delta, "l0": l0, "items": items}
    parameters |= {"rows": rows, "sums": sums, "means": means}
    call = Call.of(aggregate, data, options, budget, parameters, values=[*values])
    require_one(rho, epsilon)
    columns = {name: _bounds(name, given) for name, given in (("sums", sums), ("means", means))}
    if rows is True or any(bounds[:2] in _FREE for own in columns.values() for bounds in own.values()):
        if l0 is not None or not isinstance(rows, bool | None):
            raise ParameterError.about(
                "with {l0}, {rows} is a number, and each column of {sums} and {means} has bounds: leave out {l0} and "
                "all bounds with {rows:True}, or give all of them"
            )
        if any(bounds[:2] not in _FREE for bounds in columns["means"].values()):
            raise ParameterError.about("{means} without {l0} need no bounds: give names of columns")
        return _calibrated(call, items, (rho, epsilon, delta), rows=bool(rows), **columns)
    bounded = {name: _bounded(name, given, call.table) for name, given in columns.items()}
    listed = require_known(items, others=False, l0=l0, mechanism=None)

    kinds = mechanisms.Aggregates, partial(mechanisms.Aggregates, delta=None)
    limits = {**bounded, "rows": None if rows is False else rows, "l0": l0}
    return _released(call, kinds, listed, (rho, epsilon, delta), limits, (_SKIPPED_VALUES,) if values else ())


def _calibrated(
    call: Call,
    items: Sequence[Label] | None,
    promised: tuple[float | None, float | None, float | None],
    *,
    rows: bool,
    sums: Mapping[str, list[object]],
    means: Mapping[str, list[object]],
) -> Release:
    """Return the release of numbers that need no bounds."""
    free = {
        name: tuple(_free(name, column, bounds, call.table) for column, bounds in own.items())
        for name, own in (("sums", sums), ("means", means))
    }
    listed = require_known(items, others=False, l0=None, mechanism=None)
    kinds = mechanisms.CalibratedAggregates, partial(mechanisms.CalibratedAggregates, delta=None)
    return _released(call, kinds, listed, promised, {**free, "rows": rows}, (_SKIPPED_VALUES,) if sums or means else ())


def _free(name: str, column: str, bounds: list[object], table: Table) -> tuple[str, int | None, int | None, float]:
    """Return a column with its bounds in steps, or None for each, and its step."""
    if bounds[:2] in _FREE:
        step = own_step(table, column) if len(bounds) < 3 or bounds[2] is None else _resolution(bounds[2])
        return column, None, None, step
    ((_, low, high, step),) = _bounded(name, {column: bounds}, table)
    return column, low, high, step


def _bounds(name: str, given: object) -> dict[str, list[object]]:
    """Return the bounds of each column, and its resolution if there is one, or raise ParameterError."""
    if isinstance(given, list | tuple):
        given = {column if isinstance(column, str) else place: None for place, column in enumerate(given)}
    if not isinstance(given, Mapping | None):
        raise ParameterError.about(
            '{} must be a list of columns, or a dict of columns and bounds, such as {{"price": (0, 50)}}',
            Parameter(name),
        )
    found = {}
    for column, bounds in (given or {}).items():
        if not isinstance(column, str):
            raise ParameterError.about("a key of {} must be the name of a column", Parameter(name))
        found[column] = list(bounds) if isinstance(bounds, tuple | list) else []
        if bounds is not None and len(found[column]) not in (2, 3):
            raise ParameterError.about(
                "a value of {} must have the least and the largest value of one user for one item, such as "
                "(0, 50), and may have a resolution: (0, 50, 0.01)",
                Parameter(name),
            )
    return found


def _bounded(name: str, given: object, table: Table) -> tuple[tuple[str, int, int, float], ...]:
    """Return columns with bounds in steps and with their step, or raise ParameterError."""
    found = []
    for column, (low, high, *step) in _bounds(name, given).items():
        try:
            found.append(
                (column, *_in_steps((low, high), step[0] if step else None, table, column, is_mean=name == "means"))
            )
        except ParameterError as error:
            raise ParameterError.about("{} of {}: {}", Parameter(name), brief(column), error) from None
    return tuple(found)


def _in_steps(
    bounds: object,
    resolution: object,
    table: Table,
    column: str | None,
    *,
    is_found: bool = False,
    is_mean: bool = False,
) -> tuple[int, int, float]:
    """Return the bounds as whole steps and the step, by default that of the column, or raise ParameterError.

    Bounds that are no whole steps of the column become wider.
    """
    is_own = resolution is None
    step = own_step(table, str(column)) if is_own else _resolution(resolution)
    if is_found:
        return 0, 0, step
    given: Foreign = bounds
    pair = list(given) if isinstance(given, tuple | list) or getattr(given, "ndim", 0) == 1 else []
    if len(pair) != 2:
        raise ParameterError.about(
            "{bounds} must be a pair of the least and the largest sum of a user for an item, such as (0, "
            '20), or "auto" to find them with privacy'
        )
    unit = exact_step(step)
    least, most = (_number(bound) for bound in pair)
    if least >= most:
        raise ParameterError.about("{bounds} must be in order: low must be below high")
    for bound, one in zip(pair, (least, most), strict=True):
        if not is_own and one % unit:
            raise ParameterError.about(
                "{bounds} must be whole multiples of the {resolution}, {:g}, and {} is not; give another "
                "resolution, such as 0.01 for amounts with two decimal places",
                step,
                bound,
            )
        if abs(one / unit) > 2**95:
            raise ParameterError.about(
                "{bounds} must be at most 2^95 steps of {:g}; give a larger {resolution}, or narrower bounds", step
            )
    largest = most - least if is_mean else max(abs(least), abs(most))
    if is_own and step == FINE and largest < FEWEST * unit:
        raise ParameterError.about(
            "{bounds} must be at least 2^20 steps, and those of floats and text are 2^-32: give a "
            "{resolution}, such as 1e-12, or multiply the column and its bounds, such as by 1e6"
        )
    return math.floor(least / unit), math.ceil(most / unit), step


def _resolution(resolution: object) -> float:
    """Return the unit as a float, a Decimal or a float of numpy as that of the same shortest decimal.

    Raises ParameterError if it is out of range.
    """
    if isinstance(resolution, Decimal) or (isinstance(resolution, Real) and hasattr(resolution, "dtype")):
        with suppress(ValueError):
            resolution = float(str(resolution))
    return require_number("resolution", resolution, 1e-12, 1e12, open_low=False)


def _number(bound: object) -> Fraction:
    """Return a bound as a fraction, or raise ParameterError."""
    try:
        if isinstance(bound, bool) or not isinstance(bound, Real | Decimal):
            raise TypeError
        # The text of a float of any width is the shortest decimal that reads as this float.
        number = Decimal(str(bound))
        if number.is_snan():
            raise TypeError
    except (InvalidOperation, TypeError, ValueError):
        raise ParameterError.about(
            "{bounds} must be two numbers, such as (0, 20), and each an int, a float or a Decimal, not {}", brief(bound)
        ) from None
    if not number.is_finite():
        raise ParameterError.about("{bounds} must be finite: choose the least and the largest sum without the data")
    if number.adjusted() > 100:
        raise ParameterError.about("{bounds} must be below 1e100: give a larger resolution, or narrower bounds")
    return Fraction(number)
