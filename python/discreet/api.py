"""The verbs: a table in, a Release out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from discreet.histogram import Histogram
from discreet.mechanisms.private_count_release import PrivateCountRelease
from discreet.privacy import resolve_rho
from discreet.release import Release

__all__ = ["count"]


def count(
    data: Any,
    *,
    user: str,
    item: str,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float,
    relative_error: float = 0.1,
    k_bar: int = 10_000,
    epsilon_star: float = 0.0005,
    delta_star: float = 1e-11,
    progress: Callable[[int], None] | None = None,
) -> Release:
    """How many users have each item, for items that nobody listed in advance.

    `data`: rows of (user, item): a path or glob of Parquet or CSV files, any frame or relation with
    `__arrow_c_stream__` (polars, pandas, pyarrow, DuckDB), or a dict of two equally long arrays. `user` and
    `item` name its columns, of integers or text. Give exactly one of `rho`, the cost in delta-approximate
    rho-zCDP, and `epsilon`, the total (epsilon, delta)-DP promise. A user may have any number of items
    and counts once for each. Counts are released to about `relative_error` by `PrivateCountRelease`,
    whose parameters the others are (Rogers 2024, Algorithm 2). `progress` is called with the rows read.

    Returns a Release of item, noisy count and sigma. Raises ParameterError, SchemaError or InputError
    before anything is spent.
    """
    rho, delta = resolve_rho(rho, epsilon, delta)
    mechanism = PrivateCountRelease(
        rho=rho,
        delta=delta,
        epsilon_star=epsilon_star,
        delta_star=delta_star,
        k_bar=k_bar,
        relative_error=relative_error,
    )
    histogram = Histogram.from_table(data, user=user, item=item, k_bar=mechanism.rows_needed - 1, progress=progress)
    return mechanism.release(histogram)
