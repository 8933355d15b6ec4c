"""The Rust engine: exact counting, exact noise and exact selection. It has no notion of epsilon."""

from collections.abc import Callable, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "LONGEST",
    "LONGEST_LINE",
    "Counts",
    "CsvInput",
    "ItemTable",
    "KnownLabels",
    "Labels",
    "Levels",
    "Lists",
    "NodeNoise",
    "NodeSums",
    "Noise",
    "Pairs",
    "Rng",
    "Threshold",
    "WeightedNoise",
    "WeightedPairs",
    "__version__",
    "arrow_stream",
    "chance_table",
    "compose",
    "confirm",
    "corrected",
    "count_distinct",
    "csv_dropped",
    "csv_escapes",
    "csv_header",
    "csv_of_json",
    "csv_stream",
    "first_above",
    "items_per_user",
    "json_dropped",
    "json_stream",
    "moment_of",
    "partition_selection",
    "private_count_release",
    "process",
    "shuffled",
    "tally",
    "text_rows",
    "top",
]

_Times = tuple[str, str | None, int | None, int | None, str | None]

LONGEST: int
LONGEST_LINE: int
"""The most bytes of a user or item that is text or bytes; longer ones are left out with their rows."""

__version__: str

@final
class Counts:
    """Exact counts; not shown, compared, copied or pickled."""

    def __new__(cls, counts: NDArray[np.int64]) -> Counts: ...
    def array(self) -> NDArray[np.int64]: ...

@final
class Labels:
    """Distinct labels, one per row; not shown, compared, copied or pickled."""

    @staticmethod
    def from_sequence(values: Sequence[str | int | bytes | tuple[str | int | bytes, ...]] | ArrayLike) -> Labels: ...
    @staticmethod
    def of_encoded(values: Sequence[bytes], columns: Sequence[tuple[str, str]]) -> Labels: ...
    def columns(self) -> list[Labels]: ...
    def take(self, rows: NDArray[np.int64]) -> list[Any]: ...
    def select(self, rows: NDArray[np.int64]) -> Labels: ...
    def ordered(self, rows: NDArray[np.int64], counts: NDArray[np.int64]) -> tuple[Labels, NDArray[np.int64]]: ...
    def to_list(self) -> list[Any]: ...
    def integers(self) -> NDArray[np.int64] | NDArray[np.uint64] | None: ...
    def items(self) -> int: ...
    @property
    def type_name(self) -> str | tuple[tuple[str, str], ...]: ...

@final
class KnownLabels:
    """Distinct labels that are found among other labels; not shown, compared, copied or pickled."""

    @staticmethod
    def from_sequence(values: Sequence[str | int | bytes] | ArrayLike) -> KnownLabels: ...
    def require_like(self, labels: Labels) -> None: ...
    def split(
        self, labels: Labels, counts: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]: ...
    def join(
        self,
        known: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
        labels: Labels,
        others: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> tuple[Labels, NDArray[np.int64]]: ...

@final
class Lists:
    """The items of every user; not shown, compared, copied or pickled."""

    @staticmethod
    def read(
        source: object,
        user: str | Sequence[str],
        item: str | Sequence[str],
        *,
        l0: int | None = None,
        any_order: bool = False,
        threads: int | None = None,
        memory: int | None = None,
        times: _Times | None = None,
        progress: Callable[[], None] | None = None,
    ) -> tuple[Labels, Lists]: ...
    def bounded(
        self, l0: int, found: NDArray[np.int64], key: Sequence[int], *, shared_order: bool = False
    ) -> Lists: ...
    def ordered(self, order: NDArray[np.int64], *, sort_items: bool = False) -> Lists: ...
    def count(
        self, labels: Labels, key: Sequence[int], *, l0: int | None = None, only: Labels | None = None
    ) -> tuple[NDArray[np.int64], int]: ...
    def sizes(self) -> NDArray[np.int64]: ...
    def weights(self, weighting: str, bits: int, *, target: int = 1, few: int = 1) -> NDArray[np.int64]: ...

@final
class Pairs:
    """The rows of all users; not shown, compared, copied or pickled."""

    @staticmethod
    def read(
        source: object,
        user: str | Sequence[str],
        item: str | Sequence[str],
        *,
        value: str | None = None,
        resolution: float = 1.0,
        valued: bool = False,
        only: Labels | None = None,
        like: Pairs | None = None,
        threads: int | None = None,
        memory: int | None = None,
        times: _Times | None = None,
        progress: Callable[[], None] | None = None,
    ) -> Pairs: ...
    def sizes(self, *, progress: Callable[[], None] | None = None) -> NDArray[np.int64]: ...
    def extents(self, *, progress: Callable[[], None] | None = None) -> NDArray[np.int64]: ...
    def counts(self, l0: int, *, progress: Callable[[], None] | None = None) -> tuple[Labels, NDArray[np.int64]]: ...
    def measured(
        self,
        items: Labels,
        l0: int,
        measures: Sequence[tuple[str, int, int, int, int, int]],
        *,
        progress: Callable[[], None] | None = None,
    ) -> tuple[Labels, NDArray[np.int64]]: ...

@final
class WeightedPairs:
    """Weighted sums of all numbers of a user; not shown, compared, copied or pickled."""

    def __new__(
        cls, pairs: Sequence[Pairs], columns: Sequence[tuple[int, str, int, int]], items: Labels
    ) -> WeightedPairs: ...
    @property
    def items(self) -> Labels: ...
    def norms(self, weights: Sequence[int], *, progress: Callable[[], None] | None = None) -> NDArray[np.int64]: ...
    def sums(
        self,
        multipliers: Sequence[tuple[Sequence[int], int]],
        bits: int,
        *,
        progress: Callable[[], None] | None = None,
    ) -> NDArray[np.int64]: ...
    def layers(
        self,
        column: int,
        factors: Sequence[int],
        shift: int,
        cap: int,
        *,
        progress: Callable[[], None] | None = None,
    ) -> list[int]: ...

@final
class CsvInput:
    """A CSV table on standard input, which can be read only once."""

    def __new__(
        cls, head: bytes, delimiter: int, *, encoding: str = "utf-8", headless: int | None = None
    ) -> CsvInput: ...
    @property
    def header(self) -> list[bytes]: ...
    def stream(self, columns: Sequence[int], *, value: int | None = None) -> object: ...

def process() -> tuple[int, int]:
    """Return the process id and the number of forks since the first import; a forked child never has the same pair.

    A child in a new PID namespace may have the id of its parent, but its number of forks differs.
    """

def csv_dropped(
    paths: Sequence[str],
    delimiter: int,
    columns: Sequence[int],
    *,
    value: int | None = None,
    encoding: str = "utf-8",
    headless: int | None = None,
) -> tuple[tuple[int, int, int, int], list[tuple[str, int, int]]]: ...
def csv_header(path: str, delimiter: int, *, encoding: str = "utf-8", block: int = ...) -> list[bytes]: ...
def csv_stream(
    paths: Sequence[str],
    delimiter: int,
    columns: Sequence[int],
    *,
    value: int | None = None,
    encoding: str = "utf-8",
    headless: int | None = None,
    block: int = ...,
) -> object: ...
def moment_of(text: str) -> int | None: ...
def json_dropped(
    paths: Sequence[str], keys: Sequence[str], *, value: str | None = None
) -> tuple[int, list[tuple[str, int | None, int, list[tuple[int, int]]]]]: ...
def json_stream(paths: Sequence[str], keys: Sequence[str], *, value: str | None = None, block: int = ...) -> object: ...

_Counts = Sequence[int] | NDArray[np.int64]

@final
class Rng:
    """One stream of random bits for one release; it cannot be copied, pickled or used after a fork."""

    def __new__(cls) -> Rng: ...
    @staticmethod
    def seeded(seed: int) -> Rng: ...
    @staticmethod
    def scripted(words: Sequence[int]) -> Rng: ...
    def split(self) -> Rng: ...
    @property
    def is_seeded(self) -> bool: ...
    def bits32(self) -> int: ...
    def bits64(self) -> int: ...
    def words(self, size: int) -> NDArray[np.uint32]: ...
    def bernoulli_exp(self, x: float) -> bool: ...
    def sample(self, noise: Noise, size: int) -> NDArray[np.int64]: ...
    def discrete_gaussian(self, sigma: float, size: int) -> NDArray[np.int64]: ...
    def bounded_beta(self, reach: int, power: int, size: int) -> NDArray[np.int64]: ...
    def select(self, counts: _Counts, reference: int, gamma: float, bottom: int, offset: float) -> int: ...
    def peel(
        self, counts: _Counts, reference: int, gamma: float, bottom: int, offset: float, k: int
    ) -> tuple[list[int], bool]: ...

@final
class Noise:
    """An integer distribution with exact draws (`Rng.sample`) and rigorous upper bounds of its tail."""

    @staticmethod
    def discrete_gaussian(sigma: float) -> Noise: ...
    @staticmethod
    def discrete_laplace(scale: float) -> Noise: ...
    @staticmethod
    def truncated_geometric(scale: float, bound: int) -> Noise: ...
    def tail(self, m: int) -> float: ...
    def tail_bounds(self, m: int) -> tuple[float, float]: ...
    def two_tails_are_at_most(self, m: int, p: float) -> bool: ...
    def quantile(self, p: float) -> int: ...

@final
class ItemTable:
    """Distinct labels of one type by row number; not shown, compared, copied or pickled."""

    def __new__(cls) -> ItemTable: ...
    def extend(self, labels: Sequence[str | int | bytes]) -> None: ...
    def find(self, labels: Sequence[str | int | bytes]) -> NDArray[np.int64]: ...
    def select(self, rows: NDArray[np.int64]) -> Labels: ...
    def items(self) -> int: ...

@final
class NodeNoise:
    """Reproducible noise for the items of a stream at its nodes."""

    def __new__(cls) -> NodeNoise: ...
    def extend(self, keys: bytes) -> None: ...
    def draw(self, node: int, noise: Noise) -> NDArray[np.int64]: ...
    def draw_from(self, first: int, node: int, noise: Noise) -> NDArray[np.int64]: ...
    def items(self) -> int: ...

@final
class NodeSums:
    """The sums of every item's noise over the nodes of a round."""

    def __new__(cls) -> NodeSums: ...
    def advance(self, noise: NodeNoise, nodes: Sequence[tuple[int, float, Noise]]) -> NDArray[np.int64]: ...

@final
class WeightedNoise:
    """Sums of the noise of all rounds so far, weighted by age and rounded to integers."""

    def __new__(cls, column: NDArray[np.int64]) -> WeightedNoise: ...
    @property
    def weights(self) -> NDArray[np.int64]: ...
    def advance(
        self,
        noise: NodeNoise,
        round: tuple[int, int],  # noqa: A002 - the field's term
        law: Noise,
    ) -> tuple[NDArray[np.int64], list[int]]: ...
    def history(self, noise: NodeNoise, item: int, law: Noise) -> list[list[int]]: ...

@final
class Threshold:
    """The rule that releases a noisy count larger than `value`, and the probability that a count passes it."""

    def __new__(cls, noise: Noise, value: int) -> Threshold: ...
    @staticmethod
    def for_chance(noise: Noise, count: int, p: float) -> Threshold: ...
    @property
    def value(self) -> int: ...
    def passes(self, noisy: int) -> bool: ...
    def chance(self, count: int) -> float: ...
    def release(
        self, counts: NDArray[np.int64], rng: Rng | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...

def count_distinct(
    source: object,
    user: str | Sequence[str],
    item: str | Sequence[str],
    *,
    l0: int | None = None,
    only: Labels | None = None,
    limit: int | None = None,
    cap: int | None = None,
    threads: int | None = None,
    memory: int | None = None,
    times: _Times | None = None,
    value: str | None = None,
    users: bool = False,
    secret: bytes | None = None,
    progress: Callable[[], None] | None = None,
) -> tuple[Labels, NDArray[np.int64], int | None]: ...
def tally(
    source: object,
    user: str | Sequence[str],
    item: str | Sequence[str],
    *,
    times: _Times | None = None,
    value: str | None = None,
) -> dict[str, Any]: ...
def items_per_user(
    source: object,
    user: str | Sequence[str],
    item: str | Sequence[str],
    levels: Sequence[float],
    rank: int,
    *,
    memory: int | None = None,
    times: _Times | None = None,
) -> tuple[int, int, list[int], int]: ...
def top(labels: Labels, counts: NDArray[np.int64], n: int) -> NDArray[np.int64]: ...
def chance_table(growth: Sequence[int], decay: Sequence[int], share: Sequence[int]) -> NDArray[np.uint64]: ...
def partition_selection(
    counts: NDArray[np.int64], chances: NDArray[np.uint64], rng: Rng | None = None
) -> NDArray[np.int64]: ...
def private_count_release(
    counts: NDArray[np.int64],
    limit: int | None,
    levels: Sequence[tuple[float, float, float, int, int]],
    budget: int,
    calls: int,
    k_bar: int,
    rng: Rng | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int, int, bool]: ...

@final
class Levels:
    """The levels of Confirmed Counts."""

    def __new__(
        cls,
        levels: Sequence[tuple[float, int, Sequence[tuple[float, int]], tuple[float, int], float]],
        step_deltas: Sequence[float],
        bound_deltas: Sequence[float],
    ) -> Levels: ...

def confirm(
    counts: NDArray[np.int64],
    limit: int | None,
    levels: Levels,
    setting: tuple[int, int, int, int, int, int, int, int, int],
    rng: Rng | None = None,
    *,
    pause: int | None = None,
    resumed: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int, int, tuple[int, int, int]]
    | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], int, int, tuple[int, int, int], str]: ...
def shuffled(size: int, rng: Rng) -> NDArray[np.int64]: ...
def first_above(
    values: NDArray[np.int64], threshold: int, of_threshold: Noise, of_query: Noise, rng: Rng
) -> int | None: ...
def corrected(
    values: NDArray[np.int64],
    answers: NDArray[np.int64],
    runs: int,
    threshold: int,
    of_threshold: Noise,
    of_query: Noise,
    again: Noise,
    rng: Rng,
) -> NDArray[np.int64]: ...
def compose(parts: Sequence[tuple[NDArray[np.float64], int]]) -> tuple[NDArray[np.float64], float]: ...
def arrow_stream(columns: Sequence[tuple[str, object, str]]) -> object: ...
def text_rows(
    columns: Sequence[object],
    pieces: Sequence[bytes],
    is_json: bool,
    start: int,
    stop: int,
) -> bytes | None: ...
def csv_escapes(values: object) -> bool | None: ...
def csv_of_json(text: bytes, pieces: Sequence[bytes], skipped: int, start: int, stop: int) -> bytes | None: ...
