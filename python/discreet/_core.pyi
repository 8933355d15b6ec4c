"""The Rust engine: exact counting, exact noise, exact selection. It knows no epsilon."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Labels", "Rng", "__version__", "arrow_stream", "count_distinct", "count_pairs", "price_list", "top"]

__version__: str

@final
class Labels:
    """Distinct labels, one a row; not shown, compared, copied or pickled."""

    @staticmethod
    def from_sequence(values: Sequence[str | int | bytes] | ArrayLike) -> Labels: ...
    def take(self, rows: NDArray[np.int64]) -> list[Any]: ...
    def select(self, rows: NDArray[np.int64]) -> Labels: ...
    @property
    def type_name(self) -> str: ...

@final
class Rng:
    """One stream of random bits for one release; not copied, pickled or used after a fork."""

    def __new__(cls) -> Rng: ...
    @staticmethod
    def seeded(seed: int) -> Rng: ...
    @property
    def is_seeded(self) -> bool: ...
    def bits64(self) -> int: ...
    def bernoulli_exp(self, x: float) -> bool: ...
    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]: ...
    def select(
        self, counts: Sequence[int] | NDArray[np.int64], reference: int, gamma: float, bottom: int, offset: float
    ) -> int: ...

def count_distinct(
    stream: Any,
    user: str,
    item: str,
    *,
    threads: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> tuple[Labels, NDArray[np.int64]]: ...
def count_pairs(users: Any, items: Any, *, threads: int | None = None) -> tuple[Labels, NDArray[np.int64]]: ...
def top(labels: Labels, counts: NDArray[np.int64], n: int) -> NDArray[np.int64]: ...
def price_list(
    counts: NDArray[np.int64],
    limit: int | None,
    levels: Sequence[tuple[float, float, float, int, int]],
    budget: int,
    calls: int,
    k_bar: int,
    rng: Rng | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int, int, bool]: ...
def arrow_stream(columns: Sequence[tuple[str, Any, str]]) -> object: ...
