"""Vocabularies for scikit-learn that betray no user (needs scikit-learn)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from discreet.api import select
from discreet.errors import ParameterError, needs

with needs("scikit-learn"):
    from sklearn.base import BaseEstimator, TransformerMixin, clone
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.utils.validation import check_is_fitted

__all__ = ["PrivateVocabulary"]


class PrivateVocabulary(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Counts the terms of documents, of a vocabulary that was learned with differential privacy.

    `fit(documents, users=...)` splits each document into terms as `vectorizer` does, and takes those that
    `discreet.select` can name, at most `l0` of each user: (epsilon, delta)-DP, or delta-approximate rho-zCDP, for a
    user with all their documents. `transform` then counts these terms. Only the vocabulary is private: what
    `transform` returns is as sensitive as the documents that it is given, and so is what is learned from it.

    Give exactly one of `rho` and `epsilon`. `vectorizer`: a CountVectorizer whose tokens, n-grams and stop words are
    used, its own vocabulary and limits of frequency not; one by default. `method`: as in `discreet.select`. With
    metadata routing, `set_fit_request(users=True)` passes `users` on. After `fit`: `vocabulary_`, a dict of terms and
    columns in the terms' own order; `release_`, the Release that named them.
    """

    def __init__(
        self,
        *,
        delta: float,
        l0: int,
        epsilon: float | None = None,
        rho: float | None = None,
        method: str = "auto",
        vectorizer: CountVectorizer | None = None,
    ) -> None:
        self.delta = delta
        self.l0 = l0
        self.epsilon = epsilon
        self.rho = rho
        self.method = method
        self.vectorizer = vectorizer

    def fit(self, X: Iterable[str], y: Any = None, *, users: Sequence[Any] | None = None) -> Self:  # noqa: N803
        """Learns the vocabulary of the documents `X`; `users` says whose each of them is, integers or text.

        Raises ParameterError where the users are missing or not as many as the documents, or a parameter is out
        of range.
        """
        if users is None:
            raise ParameterError(
                "give users=, whose each document is; in a pipeline by set_fit_request(users=True) and metadata routing"
            )
        documents = list(X)
        if len(users) != len(documents):
            raise ParameterError("there must be as many users as documents")
        vectorizer = self._vectorizer()
        split = vectorizer.build_analyzer()
        owners, terms = [], []
        for owner, document in zip(users, documents, strict=True):
            for term in set(split(document)):
                owners.append(owner)
                terms.append(term)
        self.release_ = select(
            {"user": owners, "item": terms},
            user="user",
            item="item",
            rho=self.rho,
            epsilon=self.epsilon,
            delta=self.delta,
            l0=self.l0,
            method=self.method,
        )
        self.vocabulary_ = {term: column for column, term in enumerate(self.release_.items)}
        return self

    def transform(self, X: Iterable[str]) -> Any:  # noqa: N803
        """How often each term of the vocabulary is in each document: a sparse matrix, documents by terms."""
        check_is_fitted(self, "vocabulary_")
        if not self.vocabulary_:
            raise ParameterError("no term could be named; raise epsilon or delta, or learn from more users")
        return self._vectorizer().set_params(vocabulary=self.vocabulary_).transform(X)

    def get_feature_names_out(self, input_features: object = None) -> object:
        """The terms, in the order of the columns."""
        import numpy as np

        check_is_fitted(self, "vocabulary_")
        return np.array(list(self.vocabulary_), dtype=object)

    def _vectorizer(self) -> Any:
        if self.vectorizer is None:
            return CountVectorizer()
        if isinstance(self.vectorizer, TfidfVectorizer) or not isinstance(self.vectorizer, CountVectorizer):
            raise ParameterError("vectorizer must be a CountVectorizer: idf, for one, would be learned from the data")
        return clone(self.vectorizer)
