"""Mechanisms that answer many counting queries at once with a small largest error."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.queries.answers import MOST_STEP as MOST_STEP
    from discreet.queries.answers import Answers as Answers
    from discreet.queries.answers import in_steps as in_steps
    from discreet.queries.answers import require_values as require_values
    from discreet.queries.bounded import BoundedAnswers as BoundedAnswers
    from discreet.queries.choose import choose_answers as choose_answers
    from discreet.queries.gumbel_correction import GumbelCorrection as GumbelCorrection
    from discreet.queries.iterative_sparse_vector import IterativeSparseVector as IterativeSparseVector
    from discreet.queries.iterative_sparse_vector import Stage as Stage
    from discreet.queries.noisy import GaussianAnswers as GaussianAnswers
    from discreet.queries.noisy import LaplaceAnswers as LaplaceAnswers
    from discreet.queries.sparse_vector import AboveThreshold as AboveThreshold
    from discreet.queries.sparse_vector import Crossing as Crossing
    from discreet.queries.sparse_vector import PermutedAboveThreshold as PermutedAboveThreshold
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__,
        {
            "queries.answers": "Answers",
            "queries.bounded": "BoundedAnswers",
            "queries.gumbel_correction": "GumbelCorrection",
            "queries.iterative_sparse_vector": "IterativeSparseVector Stage",
            "queries.noisy": "GaussianAnswers LaplaceAnswers",
            "queries.sparse_vector": "AboveThreshold Crossing PermutedAboveThreshold",
        },
        inner={
            "queries.answers": "MOST_STEP in_steps require_values",
            "queries.choose": "choose_answers",
        },
    )
