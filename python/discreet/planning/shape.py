"""`Shape`: a public description of data in a few numbers, for plans."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Self, Unpack

import numpy as np

from discreet import engines
from discreet.engines.table import Columns, as_table
from discreet.errors import ParameterError
from discreet.planning.expected_counts import (
    TWENTIETH,
    Size,
    expected_users,
    fitted,
    fitted_exponent,
    fitted_spread,
    groups_of,
    kept_share,
    mean_and_spread,
)
from discreet.privacy.arrays import whole_array
from discreet.privacy.validation import require_number, require_whole
from discreet.signatures import showing

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["PAIRS_LIMIT", "Shape"]

PAIRS_LIMIT = 2**24
"""The most draws of (user, item) pairs that a shape makes."""
_ITEMS_LIMIT, _USERS_LIMIT = 2**24, 2**35
_SPARE = 1.2
"""The number of draws for a table, over the expected number."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A Zipf law of data that a plan assumes: public numbers, never those of the private data.

    The popularity of the i-th item is proportional to i^-exponent. The number of items of a user is heavy-tailed: 1
    plus a log-normal number. By default, 5 % of the users have at least 3 times the mean, and lose most by clipping.
    All results are the same in every call.

    Args:
        users: The number of users: from 1 to 2^35.
        items: The number of different items: from 1 to 2^24.
        exponent: The exponent of Zipf's law: from 0, all items equally common, to 10. Words have about 1.
        items_per_user: The mean number of different items of a user: from 1 to `items`.
        cutoff: How much rarer than by Zipf's law the rarest items are: item i by a factor of exp(-cutoff i/items). From
            0, the default, to 100. Catalogues, such as the products of a shop, have about 3. `Shape.of` fits it.
        spread: The standard deviation of the logarithm of a user's items beyond the first: from 0, all users equally
            active, to 4. Logs have about 1, the default. `Shape.of` fits it.

    Raises:
        ParameterError: A number is out of range.

    Example:
        >>> import discreet as dp
        >>> shape = dp.Shape(users=20_000, items=50_000, exponent=1.0, items_per_user=20)
        >>> shape.counts()[:3]
        array([13435,  9779,  7746])
    """

    users: int
    items: int
    exponent: float
    items_per_user: float
    cutoff: float = 0.0
    spread: float = 1.0

    def __post_init__(self) -> None:
        items = require_whole("items", self.items, 1, _ITEMS_LIMIT)
        checked = {
            "users": require_whole("users", self.users, 1, _USERS_LIMIT),
            "items": items,
            "exponent": require_number("exponent", self.exponent, 0, 10, open_low=False),
            "items_per_user": require_number("items_per_user", self.items_per_user, 1, items, open_low=False),
            "cutoff": require_number("cutoff", self.cutoff, 0, 100, open_low=False),
            "spread": require_number("spread", self.spread, 0, 4, open_low=False),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return (
            f"{self.users:,} users, {self.items:,} items, exponent {self.exponent:g}, "
            f"{self.items_per_user:g} items per user"
            + (f", cutoff {self.cutoff:g}" if self.cutoff else "")
            + (f", spread {self.spread:g}" if self.spread != 1 else "")
        )

    @classmethod
    @showing(Columns, unit="user")
    def of(cls, data: object, **columns: Unpack[Columns]) -> Self:
        """Return the shape of a PUBLIC table. This reads the table WITHOUT privacy: never give it private data.

        A plan depends on the shape, so it reveals these numbers. Use a table that anybody may read, such as last
        year's published data or an open dataset. The exponent and the cutoff are those that fit best to the
        numbers of items with at least 20 users, at least 24 users, and so on. The spread is the one with which clipping
        to the mean number of items keeps as many pairs. The table is read twice.

        Args:
            data: A public `Table`, or the public rows that a Table takes.
            **columns: The columns of rows.

        Returns:
            The shape.

        Raises:
            ParameterError: The table has no rows, or can be read only once.
            SchemaError: A column is missing or of another type.
            InputError: The data cannot be read.

        Example:
            >>> import discreet as dp
            >>> table = {"user": [1, 1, 2, 3], "page": ["a", "b", "a", "a"]}
            >>> shape = dp.Shape.of(table, user="user", item="page")
            >>> shape.users, shape.items, round(shape.items_per_user, 2)
            (3, 2, 1.33)
        """
        table = as_table(data, columns, caller=cls.of)
        engines.require_rows_again(table.data)
        counted = engines.histogram(table, users=True)
        if not len(counted.counts) or counted.users is None:
            raise ParameterError("the table has no pairs of a user and an item: give a public table with rows")
        counts = np.asarray(counted.counts)
        l0 = max(1, round(int(counts.sum()) / counted.users))
        kept = np.asarray(engines.histogram(table, l0=l0).counts).sum() / counts.sum()
        size = Size(counted.users, len(counts), 0.0, float(counts.sum() / counted.users))
        spread = fitted_spread(size, l0, float(kept)) if size.items_per_user > 1 else 1.0
        return cls.of_counts(counts, users=counted.users, spread=spread)

    @classmethod
    def of_counts(cls, counts: NDArray[np.int64], *, users: int, spread: float = 1.0) -> Self:
        """Return the shape of PUBLIC counts. This reads the counts WITHOUT privacy: never give it private counts.

        Args:
            counts: The number of users of each item, in any order.
            users: The number of users who have any of the items.
            spread: The spread of the shape, which counts do not tell.

        Returns:
            The shape.

        Raises:
            ParameterError: There are no counts above zero, or more users than pairs.
        """
        spread = require_number("spread", spread, 0, 4, open_low=False)
        found = whole_array(counts)
        if found is None or found.max(initial=0) > 2**40:
            raise ParameterError("counts must be a one-dimensional array of whole numbers up to 2^40")
        ordered = np.sort(found.astype(np.int64))[::-1]
        ordered = ordered[ordered > 0]
        users = require_whole("users", users, 1, _USERS_LIMIT)
        if not len(ordered) or ordered.sum() < users or ordered[0] > users:
            raise ParameterError("users must be at least the largest count, and at most the sum of all counts")
        mean = min(float(ordered.sum() / users), float(len(ordered)))
        exponent, cutoff = fitted(users, ordered, mean, spread) if len(ordered) > 1 else (0.0, 0.0)
        return cls(
            users=users, items=len(ordered), exponent=exponent, items_per_user=mean, cutoff=cutoff, spread=spread
        )

    @classmethod
    def of_numbers(
        cls, *, users: int, median: int, p95: int, items: int | None = None, top20: int | None = None
    ) -> Self:
        """Return a shape from numbers that the owner of the data knows, rounded as they may be published.

        The plan depends on these numbers, so give only such that may be published. `discreet check` prints them. The
        popularity of items is that of Zipf's law: with `top20` its exponent is fitted, and it is 1 otherwise, as for
        words. The page of plans compares such forecasts with releases.

        Args:
            users: The number of users.
            median: The number of different items of the median user.
            p95: The number of different items of a user at the 95th percentile: 95 % of the users have no more.
            items: The number of different items; by default two for each user, and at least 50 times p95.
            top20: The number of users of the 20th most common item.

        Returns:
            The shape.

        Raises:
            ParameterError: A number is out of range, or two contradict each other.

        Example:
            >>> import discreet as dp
            >>> print(dp.Shape.of_numbers(users=4_400, median=35, p95=200, items=3_700))
            4,400 users, 3,700 items, exponent 1, 60.8 items per user, spread 1.07
        """
        users = require_whole("users", users, 1, _USERS_LIMIT)
        median = require_whole("median", median, 1, _ITEMS_LIMIT)
        p95 = require_whole("p95", p95, median, _ITEMS_LIMIT)
        usual = min(_ITEMS_LIMIT, max(50 * p95, 2 * users))
        items = usual if items is None else require_whole("items", items, p95, _ITEMS_LIMIT)
        mean, spread = mean_and_spread(median, p95, items)
        exponent = 1.0
        if top20 is not None:
            if items < TWENTIETH:
                raise ParameterError.about("{top20} needs at least 20 {items}: leave it out")
            top20 = require_whole("top20", top20, 1, users)
            exponent = fitted_exponent(Size(users, items, 0.0, mean, 0.0, spread), top20)
        return cls(users=users, items=items, exponent=exponent, items_per_user=mean, spread=spread)

    @property
    def _size(self) -> Size:
        return Size(*astuple(self))

    def counts(self, l0: int | None = None) -> NDArray[np.int64]:
        """Return the expected number of users of each item, rounded, the most common item first.

        Args:
            l0: Count at most l0 items of each user, chosen uniformly.

        Returns:
            One count for each item. The rarest items may have zero users.
        """
        found = np.rint(self.expected(l0)).astype(np.int64)
        found.flags.writeable = False
        return found

    def expected(self, l0: int | None = None) -> NDArray[np.float64]:
        """Return the expected number of users of each item, the most common item first.

        Args:
            l0: Count at most l0 items of each user, chosen uniformly.

        Returns:
            One number for each item.
        """
        ranks, counts = expected_users(self._size, None if l0 is None else require_whole("l0", l0, 1))
        places = np.log(np.arange(1, self.items + 1))
        return np.exp(np.interp(places, np.log(ranks), np.log(np.maximum(counts, 1e-300))))

    def kept_share(self, l0: int) -> float:
        """Return the share of (user, item) pairs that remain if at most l0 items of each user are counted.

        Args:
            l0: The most items of a user: from 1.

        Returns:
            A share from 0 to 1.

        Example:
            >>> import discreet as dp
            >>> round(dp.Shape(users=20_000, items=50_000, exponent=1.0, items_per_user=20).kept_share(10), 2)
            0.42
        """
        return kept_share(self._size, require_whole("l0", l0, 1))

    def table(self) -> dict[str, NDArray[np.int64]]:
        """Return a table of distinct (user, item) pairs that follows this shape, the same in every call.

        Returns:
            The columns `user` and `item`. Items are ranks: 0 is the most common.

        Raises:
            ParameterError: The shape has more than about 16 million pairs.

        Example:
            >>> import discreet as dp
            >>> shape = dp.Shape(users=1_000, items=500, exponent=1.0, items_per_user=5)
            >>> sorted(shape.table())
            ['item', 'user']
        """
        if not self.makes_table:
            raise ParameterError(
                f"this shape has more than {PAIRS_LIMIT:,} draws of pairs: give fewer users or items_per_user"
            )
        own, random = groups_of(self._size), np.random.default_rng(1)  # public data, so plans may repeat it
        group = np.arange(self.users) * len(own.draws) // self.users
        wanted = np.floor(own.activity[group] + random.random(self.users)).astype(np.int64)
        # Draw some more than expected, and keep the first distinct ones: users then have exactly as many as wanted.
        number = np.ceil(_SPARE * own.draws[group]).astype(np.int64) + 2
        user = np.repeat(np.arange(self.users), number)
        popularity = np.exp(np.interp(np.log(np.arange(1, self.items + 1)), np.log(own.ranks), np.log(own.popularity)))
        cumulated = np.cumsum(popularity)
        item = np.searchsorted(cumulated, random.random(len(user)) * cumulated[-1]).clip(max=self.items - 1)
        first = np.sort(np.unique(user * self.items + item, return_index=True)[1])
        user, item = user[first], item[first]
        place = np.arange(len(user)) - np.searchsorted(user, user)
        kept = place < wanted[user]
        # Active users and common items come in no order: some mechanisms take one user or row after the other.
        names, order = random.permutation(self.users), random.permutation(int(kept.sum()))
        return {"user": names[user[kept]][order], "item": item[kept][order]}

    @property
    def makes_table(self) -> bool:
        """Whether the shape has few enough pairs for `table`."""
        return (_SPARE * float(groups_of(self._size).draws.mean()) + 2) * self.users <= PAIRS_LIMIT
