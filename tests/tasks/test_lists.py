"""Lists of terms: the top 100 search terms. docs/how-to/vocabulary.md has a vocabulary for a model."""

import numpy as np
import pytest
from command import discreet
from made import polars


@pytest.fixture(scope="module")
def searches():
    """Return rows of (user, term): 3,000 terms by Zipf's law, and one secret term of each user."""
    random = np.random.default_rng(4)
    user, chances = np.arange(20_000).repeat(15), 1 / np.arange(1, 3001)
    terms = random.choice(3000, len(user), p=chances / chances.sum())
    secrets = [f"secret {number}" for number in range(20_000)]
    return {"user": [*user.tolist(), *range(20_000)], "term": [*(f"term {n}" for n in terms.tolist()), *secrets]}


def test_the_top_100_terms_are_published_without_secrets(searches, tmp_path):
    polars.DataFrame(searches).write_csv(tmp_path / "log.csv")
    asked = ["--user", "user", "--item", "term", "-k", "100", "--epsilon", "4", "--delta", "1e-6"]
    code, out, err = discreet("top-k", tmp_path / "log.csv", *asked, "-f", "csv")
    lines = out.splitlines()
    ranks = [int(line.split("term ")[1].split(",")[0]) for line in lines[1:]]
    assert (code, "(4, 1e-06)-DP" in err) == (0, True)
    assert lines[0] == "term,rank"
    assert len(ranks) == 100
    assert ranks[:3] == [0, 1, 2]
    assert max(ranks) < 200  # the true 100th term has a number near 100
    assert "secret" not in out
