"""Mechanisms that answer many counting queries at once with a small largest error."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.queries.answers import MOST_STEP as MOST_STEP
    from discreet.queries.answers import Answers
    from discreet.queries.answers import in_steps as in_steps
    from discreet.queries.answers import require_values as require_values
    from discreet.queries.bounded import BoundedAnswers
    from discreet.queries.choose import choose_answers as choose_answers
    from discreet.queries.gumbel_correction import GumbelCorrection
    from discreet.queries.iterative_sparse_vector import IterativeSparseVector, Stage
    from discreet.queries.noisy import GaussianAnswers, LaplaceAnswers
    from discreet.queries.sparse_vector import AboveThreshold, Crossing, PermutedAboveThreshold
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "queries.answers": "Answers MOST_STEP in_steps require_values",
            "queries.bounded": "BoundedAnswers",
            "queries.choose": "choose_answers",
            "queries.gumbel_correction": "GumbelCorrection",
            "queries.iterative_sparse_vector": "IterativeSparseVector Stage",
            "queries.noisy": "GaussianAnswers LaplaceAnswers",
            "queries.sparse_vector": "AboveThreshold Crossing PermutedAboveThreshold",
        },
    )

__all__ = [
    "AboveThreshold",
    "Answers",
    "BoundedAnswers",
    "Crossing",
    "GaussianAnswers",
    "GumbelCorrection",
    "IterativeSparseVector",
    "LaplaceAnswers",
    "PermutedAboveThreshold",
    "Stage",
]
