"""`Shape`: a public description of data in four numbers, for plans."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from discreet import engines
from discreet.errors import ParameterError
from discreet.planning.law import Size, clipped, fitted_exponent, law_of
from discreet.privacy.validation import require_number, require_whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from discreet.engines.selection import Names

__all__ = ["DEFAULT", "PAIRS_LIMIT", "Shape"]

PAIRS_LIMIT = 2**24
"""The most draws of (user, item) pairs that a shape makes."""
_ITEMS_LIMIT, _USERS_LIMIT = 2**24, 2**35
_SPARE = 1.2
"""The number of draws for a table, over the expected number."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A Zipf law of data that a plan assumes: public numbers, never those of the private data.

    The popularity of the i-th item is proportional to i^-exponent. The rarest items are rarer than that, by a factor of
    exp(-3 i/items). The number of items of a user is heavy-tailed: 1 plus a log-normal number, with a standard
    deviation of 1 in the logarithm. So 5 % of the users have at least 3 times the mean, and lose most by clipping. All
    results are the same in every call.

    Args:
        users: The number of users: from 1 to 2^35.
        items: The number of different items: from 1 to 2^24.
        exponent: The exponent of Zipf's law: from 0, all items equally common, to 10. Words have about 1.
        items_per_user: The mean number of different items of a user: from 1 to `items`.

    Raises:
        ParameterError: A number is out of range.

    Example:
        >>> import discreet as dp
        >>> shape = dp.Shape(users=20_000, items=50_000, exponent=1.0, items_per_user=20)
        >>> shape.counts()[:3]
        array([14352, 10770,  8685])
    """

    users: int
    items: int
    exponent: float
    items_per_user: float

    def __post_init__(self) -> None:
        items = require_whole("items", self.items, 1, _ITEMS_LIMIT)
        checked = {
            "users": require_whole("users", self.users, 1, _USERS_LIMIT),
            "items": items,
            "exponent": require_number("exponent", self.exponent, 0, 10, open_low=False),
            "items_per_user": require_number("items_per_user", self.items_per_user, 1, items, open_low=False),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return (
            f"{self.users:,} users, {self.items:,} items, exponent {self.exponent:g}, "
            f"{self.items_per_user:g} items per user"
        )

    @classmethod
    def of(cls, data: object, *, user: Names, item: Names) -> Self:
        """Return the shape of a PUBLIC table. This reads the table WITHOUT privacy: never give it private data.

        A plan depends on the shape, so it reveals the four numbers. Use a table that anybody may read, such as last
        year's published data or an open dataset. The exponent is the one that fits best to the number of items with at
        least 20 users, at least 40 users, and so on.

        Args:
            data: A public table, as for `discreet.count`.
            user: The name of the column of users, or of several columns that are one user.
            item: The name of the column of items, or of several columns that are one item.

        Returns:
            The shape.

        Raises:
            ParameterError: The table has no rows.
            SchemaError: A column is missing or of another type.
            InputError: The data cannot be read.

        Example:
            >>> import discreet as dp
            >>> table = {"user": [1, 1, 2, 3], "page": ["a", "b", "a", "a"]}
            >>> shape = dp.Shape.of(table, user="user", item="page")
            >>> shape.users, shape.items, round(shape.items_per_user, 2)
            (3, 2, 1.33)
        """
        counted = engines.histogram(data, user, item, users=True)
        if not len(counted.counts) or counted.users is None:
            raise ParameterError("the table has no pairs of a user and an item: give a public table with rows")
        return cls.of_counts(np.asarray(counted.counts), users=counted.users)

    @classmethod
    def of_counts(cls, counts: NDArray[np.int64], *, users: int) -> Self:
        """Return the shape of PUBLIC counts. This reads the counts WITHOUT privacy: never give it private counts.

        Args:
            counts: The number of users of each item, in any order.
            users: The number of users who have any of the items.

        Returns:
            The shape.

        Raises:
            ParameterError: There are no counts above zero, or more users than pairs.
        """
        ordered = np.sort(np.asarray(counts, np.int64))[::-1]
        ordered = ordered[ordered > 0]
        users = require_whole("users", users, 1, _USERS_LIMIT)
        if not len(ordered) or ordered.sum() < users or ordered[0] > users:
            raise ParameterError("users must be at least the largest count, and at most the sum of all counts")
        mean = min(float(ordered.sum() / users), float(len(ordered)))
        exponent = fitted_exponent(users, ordered, mean) if len(ordered) > 1 else 0.0
        return cls(users=users, items=len(ordered), exponent=exponent, items_per_user=mean)

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
        l0 = None if l0 is None else require_whole("l0", l0, 1)
        found = np.rint(self._expected(l0)).astype(np.int64)
        found.flags.writeable = False
        return found

    def _expected(self, l0: int | None) -> NDArray[np.float64]:
        """Return the expected number of users of each item."""
        ranks, counts = clipped(self._size, l0)
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
        activity = law_of(self._size).activity
        return float(np.minimum(activity, require_whole("l0", l0, 1)).sum() / activity.sum())

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
        own, random = law_of(self._size), np.random.default_rng(1)  # public data, so plans may repeat it
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
        return {"user": user[kept], "item": item[kept]}

    @property
    def makes_table(self) -> bool:
        """Whether the shape has few enough pairs for `table`."""
        return (_SPARE * float(law_of(self._size).draws.mean()) + 2) * self.users <= PAIRS_LIMIT


DEFAULT = Shape(users=20_000, items=50_000, exponent=1.0, items_per_user=20)
"""The shape of a plan without `like`."""
