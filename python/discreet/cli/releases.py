"""The commands that release rows: `discreet count`, `top-k`, `select`, `sum` and `aggregate`."""

from __future__ import annotations

from typing import Any, TypeAlias

import click

from discreet.cli import options, work
from discreet.cli.parsing import BoundedCommand, Command

__all__ = ["aggregate", "count", "select", "sum", "top_k"]

_Bounded: TypeAlias = "tuple[tuple[Any, ...], ...]"
"""The columns of an option, each alone or with the least and the largest value."""


@click.command(cls=Command)
@options.published("count")
def count(**options: object) -> int:
    """Count the users of each item in FILE.

    FILE is a {data} file, a quoted glob or a folder of such files, or - for standard input.
    A CSV file has a header line, commas and UTF-8; --delimiter, --encoding and --no-header read others, and --sql reads
    CSV without quotes (last example). Rows whose user or item is NULL or an empty CSV
    cell are skipped. Empty text, "" in CSV, is a value.

    Without --l0, a user may have any number of items. The command confirms the most common items, with the accuracy
    that --relative-error sets, and estimates the counts of rarer ones; the column method says which. A larger --rho
    releases more items.

    With --l0 N, at most N items of each user count. All counts have the same noise, which shrinks as --rho grows;
    --l0 1 is best if all users have one item and are fewer than about 8,000/sqrt(rho), and no better with more. The
    command uses the threshold mechanism that can release items with the fewest users. The choice depends on the
    parameters alone, not on the data (see `discreet plan count`). Counts are then below the numbers of users;
    --kept-share says by how much. --l0 auto finds N with a share of rho.

    With --items FILE, all items of a public list are counted, and no --delta is needed: --epsilon alone is pure DP.

    The column sigma is the standard deviation of a count's error; with --l0, of its noise alone, without what clipping
    loses.

    \b
    discreet count visits.parquet --user user --item item --rho 1 --delta 1e-6
    discreet count visits.parquet --user user --item country --item page \\
        --time ts --every 1d --rho 1 --delta 1e-6
    discreet count visits.parquet --user user --item item --rho 1 --delta 1e-6 \\
        --l0 auto
    discreet count visits.parquet --user user --item item --items pages.txt \\
        --rho 0.1
    discreet count 'logs/*.csv' --user id --item word --epsilon 4 --delta 1e-7 \\
        -o words.csv
    discreet count --sql "SELECT * FROM read_csv('log.csv', quote = '', \\
        all_varchar = true, parallel = false)" --user id --item word --epsilon \\
        4 --delta 1e-7
    """
    return work.publish("count", **options)


@click.command("top-k", cls=Command, short_help="Rank the K items that most users have.")
@options.published("top_k")
def top_k(**options: object) -> int:
    """Rank the K items of FILE that most users have, without counts.

    The release has fewer than K items if the remaining items are not safe to publish. A user may have any number of
    items. The default mechanism is the unknown-domain Gumbel mechanism (Rogers 2023). With --items, exactly K items of
    a public list are ranked, and no --delta is needed.

    \b
    discreet top-k visits.parquet --user user --item item -k 10 --epsilon 1 \\
        --delta 1e-6
    """
    return work.publish("top_k", **options)


@click.command(cls=Command, short_help="List the items that are safe to publish.")
@options.published("select")
def select(**options: object) -> int:
    """List the items of FILE that are safe to publish, without counts.

    Up to 100 items of a user count, or up to --l0. With --method auto, the choice of the method depends on the
    parameters alone, not on the data (see `discreet plan select`):

    \b
    --l0 1                     a threshold on counts
    --epsilon and a small l0   policy_laplace, a set union (l0 up to about 3)
    otherwise                  dp_sips, a set union in rounds

    A set union collects the items of all users, and gives each item a weight from its users. --method auto uses a
    threshold on counts instead if an item could need far more users with a set union.

    \b
    discreet select visits.parquet --user user --item item --rho 1 --delta 1e-6
    discreet select visits.parquet --user user --item item --l0 1 --epsilon 1 \\
        --delta 1e-6
    """
    return work.publish("select", **options)


@click.command(cls=Command, short_help="Sum a column for each item in FILE.")
@options.published("sum")
def sum(**options: object) -> int:  # noqa: A001 - the name of the command
    """Sum a column for each item in FILE, for items that are not known in advance.

    FILE is a {data} file, or a quoted glob or a folder of such files, as for `discreet
    count`. It is read twice, or once with --items and no --bounds-percentile: only then may it be - for standard input.
    A row whose value is no number, such as 3,50, is left out of sums; `discreet check --column` shows the owner of the
    data how many rows are.

    Without --bounds, --bounds-percentile and --l0 nothing is clipped. The rows then have the number of users and its
    sigma too, and the sigma of a sum holds what was cut from users with much and put back.

    With bounds, the values of a user for an item are added up, and this sum is clipped to --bounds, or to bounds that
    are found for a --bounds-percentile. At most --l0 items of each user count. The noise of a sum is that of N items,
    whatever the number of released items. Half of rho finds the items with a threshold on their users, the other half
    pays for the sums. Without --l0, 5 % of rho first finds N.

    The rows have the sum and its sigma in the unit of the column, in the columns COLUMN_sum and COLUMN_sum_sigma.
    Values are added up exactly: integers as they are, decimals in the places of their type, other numbers and text in
    steps of 2^-32.

    Several columns may be one user or one item together, and --time divides or limits the rows, as in `discreet count`.
    --engine spark adds up columns of numbers on a cluster.

    \b
    discreet sum sales.parquet --user customer --item shop --column price \\
        --rho 1 --delta 1e-6
    discreet sum sales.parquet --user customer --item shop --column cents \\
        --bounds 0 2000 --l0 5 --rho 1 --delta 1e-6
    discreet sum sales.csv --user customer --item shop --column price \\
        --bounds 0 20.00 --l0 5 --epsilon 2 --delta 1e-6 -o shops.csv
    """
    if options["bounds_percentile"] is not None:
        if options["bounds"] is not None:
            raise click.UsageError("Give either --bounds LOW HIGH or --bounds-percentile P.")
        options["bounds"] = "auto"
    return work.publish("sum", **options)


@click.command(cls=BoundedCommand, short_help="Count users and rows, add up and average columns.")
@options.published("aggregate")
def aggregate(resolution: float | None, sums: _Bounded, means: _Bounded, rows: object, **options: object) -> int:
    """Count users and rows, add up and average columns for each item in FILE, as one list under one guarantee.

    FILE is a {data} file, or a quoted glob or a folder of such files, as for `discreet
    count`. It is read once for each column of --sum and --mean. A row whose value is no number, such as 3,50, counts as
    a row, and not in sums and means.

    Without --l0 and bounds nothing is clipped, and sigma holds what was cut from users with much and put back. With
    bounds, the noisy counts of users select the items with a threshold, and all numbers of an item are about the same
    users: at most --l0 items of each user count. Every number has an equal part of rho, a mean two of them.

    The rows of the output have the columns count, sigma, rows, rows_sigma, COLUMN_sum, COLUMN_sum_sigma, COLUMN_mean
    and so on, in the unit of the column.

    \b
    discreet aggregate sales.parquet --user customer --item shop --rows \\
        --sum price --mean price --rho 1 --delta 1e-6
    discreet aggregate sales.parquet --user customer --item shop --rows 3 \\
        --sum price 0 50 --mean price 0 30 --l0 5 --rho 1 --delta 1e-6 \\
        -o shops.csv
    """
    named = {"sums": sums, "means": means}
    bounds = {
        name: {column: (*(pair or (None, None)), resolution) for column, *pair in given}
        for name, given in named.items()
    }
    if twice := next((name for name, given in named.items() if len(bounds[name]) < len(given)), None):
        raise click.UsageError(f"--{twice[:-1]} names a column twice. Give each column once.")
    return work.publish("aggregate", rows=True if rows == "all" else rows, **bounds, **options)
