"""Mechanisms that answer many counting queries at once with a small largest error."""

from discreet.queries import experimental
from discreet.queries.answers import Answers
from discreet.queries.bounded import BoundedAnswers
from discreet.queries.gumbel_correction import GumbelCorrection
from discreet.queries.noisy import GaussianAnswers, LaplaceAnswers
from discreet.queries.sparse_vector import AboveThreshold, Crossing, IterativeSparseVector, PermutedAboveThreshold

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
    "experimental",
]
