"""The choice of the method that answers many queries best, from public parameters alone."""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.errors import ParameterError
from discreet.logs import debug
from discreet.mechanisms.base import FromEpsilon, made_for
from discreet.privacy.guarantee import Guarantee, require_promise
from discreet.privacy.validation import is_zero, require_choice
from discreet.queries.answers import Answering, require_queries
from discreet.queries.bounded import BoundedAnswers
from discreet.queries.gumbel_correction import GumbelCorrection
from discreet.queries.iterative_sparse_vector import IterativeSparseVector
from discreet.queries.noisy import GaussianAnswers, LaplaceAnswers

__all__ = ["ANSWER_METHODS", "COMPARED", "AnswerPlan", "choose_answers", "plan_answers"]

_WIDE = 3_000

ANSWER_METHODS: dict[str, FromEpsilon[Answering]] = {
    "gaussian": GaussianAnswers,
    "laplace": LaplaceAnswers,
    "bounded": BoundedAnswers,
    "gumbel_correction": GumbelCorrection,
    "iterative_sparse_vector": IterativeSparseVector,
}
COMPARED = ("gaussian", "laplace", "bounded", "gumbel_correction")
"""The methods that "auto" compares. Iterative sparse vector is best in none of the 588 cases of docs/queries.md."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPlan:
    """The forecast errors of methods of `answer_queries`, best first.

    Args:
        k: The number of queries.
        methods: For each method its name, expected largest error, error bound, and probability to exceed the bound.
        mechanism: The mechanism of the first method.
    """

    k: int
    methods: tuple[tuple[str, float, float, float], ...]
    mechanism: Answering

    @property
    def guarantee(self) -> Guarantee:
        """The guarantee of the first method."""
        return self.mechanism.guarantee

    def __str__(self) -> str:
        lines = [f"{self.k:,} queries: {self.mechanism!r}", f"guarantee: {self.guarantee.promise}"]
        for name, expected, bound, chance in self.methods:
            most = f"never above {bound:.6g}" if chance == 0 else f"above {bound:.6g} with probability {chance:g}"
            lines.append(f"{name:>24}: largest error {expected:10.4g} expected, {most}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        import html

        return f"<pre>{html.escape(str(self))}</pre>"


def plan_answers(
    *, k: int, delta: float, rho: float | None = None, epsilon: float | None = None, method: str = "auto"
) -> AnswerPlan:
    """Forecast the expected error and the error bound of the compared methods, or of one, for `k` queries."""
    made, _ = _made(require_queries(k), rho, epsilon, delta, method)
    methods = tuple((name, m.expected_error, m.error_bound, m.bound_chance) for name, m in made.items())
    return AnswerPlan(k=k, methods=methods, mechanism=next(iter(made.values())))


def choose_answers(
    k: int, rho: float | None, epsilon: float | None, delta: float, method: str, step: int = 1
) -> tuple[Answering, tuple[str, ...]]:
    """Return the mechanism that answers `k` queries by a method, and a note that explains the choice of "auto".

    The note has the errors of answers in units of `step`.
    """
    made, refused = _made(k, rho, epsilon, delta, method)
    best, *others = made
    debug("answer_queries: %s was chosen (method=%s)", type(made[best]).__name__, method)
    if method != "auto":
        return made[best], ()
    more = ", ".join([*(f"{name} {made[name].expected_error * step:.4g}" for name in others), *refused])
    return made[best], (
        f"{best} was chosen: of {k} queries its largest error is {made[best].expected_error * step:.4g} on average "
        f"({more})",
    )


def _made(
    k: int, rho: float | None, epsilon: float | None, delta: float, method: str
) -> tuple[dict[str, Answering], list[str]]:
    """Return the mechanisms that give the guarantee, by expected error, and notes on methods that do not apply."""
    rho, epsilon, _ = require_promise(rho, epsilon, delta, with_zero=is_zero(delta))
    require_choice("method", method, ("auto", *ANSWER_METHODS))
    made, refused, error = {}, [], None
    # Under zCDP bounded noise is never better than Gaussian noise, and its search is slow.
    # For a tiny epsilon the law has millions of values.
    slow = epsilon is None or math.sqrt(k) > _WIDE * epsilon
    for name in COMPARED if method == "auto" else [method]:
        if method == "auto" and name == "bounded" and slow:
            continue
        try:
            made[name] = made_for(ANSWER_METHODS[name], rho, epsilon, k=k, delta=delta)
        except ParameterError as raised:
            error = raised
            refused.append(f"{name} does not apply")
    if not made:
        raise error or ParameterError("no method gives this guarantee; give a larger rho, epsilon or delta")
    return dict(sorted(made.items(), key=lambda item: item[1].expected_error)), refused
