"""Differentially private vocabularies for scikit-learn (needs scikit-learn)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import numpy as np

from discreet.api import select
from discreet.errors import ParameterError, needs

with needs("scikit-learn"):
    from sklearn.base import BaseEstimator, TransformerMixin, clone
    from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
    from sklearn.utils.validation import check_is_fitted

__all__ = ["PrivateVocabulary"]


class PrivateVocabulary(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A transformer that counts the terms of a vocabulary learned with differential privacy.

    `fit(documents, users=...)` splits each document into terms as `vectorizer` does. The vocabulary is the terms that
    `discreet.select` releases, from at most `l0` terms of each user. It is (epsilon, delta)-DP, or delta-approximate
    rho-zCDP, for a user with all their documents. `transform` then counts these terms. Only the vocabulary is private:
    the output of `transform` is as sensitive as its documents, and so is a model trained on it. With metadata routing,
    `set_fit_request(users=True)` passes `users` on. After `fit`, `vocabulary_` is a dict from terms to columns, sorted
    by term, and `release_` is the Release of the terms.

    Args:
        delta: The probability that the guarantee fails; far below one over the number of users.
        l0: The most terms of a user that count.
        epsilon: The total (epsilon, delta)-DP guarantee. Give exactly one of rho and epsilon.
        rho: The privacy cost, in zCDP.
        method: The method of `discreet.select`.
        vectorizer: A CountVectorizer, whose tokens, n-grams and stop words are used, but not its vocabulary and
            frequency limits. None for a default CountVectorizer.

    Example:
        >>> from discreet.sklearn import PrivateVocabulary
        >>> learner = PrivateVocabulary(epsilon=1, delta=1e-6, l0=10)
        >>> learner = learner.fit(["red apples"] * 5000, users=range(5000))
        >>> learner.vocabulary_
        {'apples': 0, 'red': 1}
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

    def fit(self, X: Iterable[str], y: object = None, *, users: Sequence[object] | None = None) -> Self:  # noqa: N803
        """Learn the vocabulary of documents.

        Args:
            X: The documents, as text.
            y: Ignored.
            users: The user of each document, integers or text.

        Returns:
            The fitted transformer.

        Raises:
            ParameterError: `users` is missing, there are not as many users as documents, or a parameter is out of
                range.
        """
        if users is None:
            raise ParameterError(
                "users is missing: give the user of each document; in a pipeline by set_fit_request(users=True) and "
                "metadata routing"
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
        """Count the terms of the vocabulary in documents.

        Args:
            X: The documents, as text.

        Returns:
            A sparse matrix of counts, documents by terms.

        Raises:
            ParameterError: The vocabulary is empty.
            NotFittedError: `fit` was not called.
        """
        check_is_fitted(self, "vocabulary_")
        if not self.vocabulary_:
            raise ParameterError(
                "the vocabulary is empty: no term was released; raise epsilon or delta, or learn from more users"
            )
        return self._vectorizer().set_params(vocabulary=self.vocabulary_).transform(X)

    def get_feature_names_out(self, input_features: object = None) -> object:
        """Return the terms in the order of the columns.

        Args:
            input_features: Ignored.

        Returns:
            An array of terms.
        """
        check_is_fitted(self, "vocabulary_")
        return np.array(list(self.vocabulary_), dtype=object)

    def _vectorizer(self) -> Any:
        if self.vectorizer is None:
            return CountVectorizer()
        if isinstance(self.vectorizer, TfidfVectorizer) or not isinstance(self.vectorizer, CountVectorizer):
            raise ParameterError(
                "vectorizer must be a CountVectorizer: other weights, such as idf, would be learned from the data"
            )
        return clone(self.vectorizer)
