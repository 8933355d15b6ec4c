"""The private vocabulary for scikit-learn."""

import subprocess
import sys

import pytest

from discreet.errors import ParameterError

sklearn = pytest.importorskip("sklearn")

from sklearn.base import clone  # noqa: E402
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer  # noqa: E402
from sklearn.linear_model import LogisticRegression  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

from discreet.sklearn import PrivateVocabulary  # noqa: E402


def documents():
    """Return reviews of 600 users, each with one unique word."""
    good = [f"Good food, very good place name{n}" for n in range(300)]
    bad = [f"bad food and a bad PLACE name{n}" for n in range(300, 600)]
    return good + bad, list(range(600)), [1] * 300 + [0] * 300


def test_common_words_are_learned_and_unique_ones_are_not():
    texts, users, _ = documents()
    # 600 unique words stay out, except with a chance of 600 * 1e-14.
    learned = PrivateVocabulary(epsilon=2.0, delta=1e-14, l0=8).fit(texts, users=users)
    assert {"good", "bad", "food", "place"} <= set(learned.vocabulary_)
    assert not any(term.startswith("name") for term in learned.vocabulary_)
    assert learned.release_.guarantee.epsilon(1e-14) <= 2.0
    counts = learned.transform(["good good food", "name7"]).toarray()
    assert counts.sum(axis=1).tolist() == [3, 0]
    assert learned.get_feature_names_out().tolist() == list(learned.vocabulary_)


def test_one_user_with_many_documents_adds_no_term():
    learned = PrivateVocabulary(rho=0.5, delta=1e-12, l0=2).fit(["secret word"] * 500, users=["u"] * 500)
    assert learned.vocabulary_ == {}
    with pytest.raises(ParameterError, match="no term"):
        learned.transform(["secret"])


def test_the_vectorizer_splits_the_terms():
    texts, users, _ = documents()
    pairs = CountVectorizer(ngram_range=(2, 2), min_df=0.9)
    learned = PrivateVocabulary(epsilon=2.0, delta=1e-6, l0=8, vectorizer=pairs).fit(texts, users=users)
    assert "very good" in learned.vocabulary_
    assert "good" not in learned.vocabulary_
    with pytest.raises(ParameterError, match="idf"):
        PrivateVocabulary(epsilon=1.0, delta=1e-6, l0=2, vectorizer=TfidfVectorizer()).fit(texts, users=users)


def test_users_are_required():
    texts, users, _ = documents()
    for given in ({}, {"users": users[:-1]}):
        with pytest.raises(ParameterError, match="users"):
            PrivateVocabulary(epsilon=1.0, delta=1e-6, l0=2).fit(texts, **given)
    with pytest.raises(ParameterError, match="exactly one"):
        PrivateVocabulary(delta=1e-6, l0=2).fit(texts, users=users)


def test_a_pipeline_routes_users_to_the_vocabulary():
    texts, users, labels = documents()
    with sklearn.config_context(enable_metadata_routing=True):
        vocabulary = PrivateVocabulary(epsilon=1.0, delta=1e-6, l0=8).set_fit_request(users=True)
        model = make_pipeline(clone(vocabulary), LogisticRegression())
        model.fit(texts, labels, users=users)
        assert model.predict(["good place", "bad place"]).tolist() == [1, 0]
        with pytest.raises(ParameterError, match="users"):
            make_pipeline(clone(vocabulary), LogisticRegression()).fit(texts, labels)


def test_an_error_about_a_missing_library_names_its_package():
    code = "import sys; sys.modules['sklearn.base'] = None; import discreet.sklearn"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "pip install scikit-learn" in done.stderr
