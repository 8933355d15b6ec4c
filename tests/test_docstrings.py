"""Docstrings: the examples of public functions run."""

import doctest
import importlib
import pkgutil

import pytest

import discreet
from discreet import Histogram, answer_queries, count, plan, select, top_k, verify


def examples():
    """All docstrings with examples, once each."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    for found in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if found.name.endswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        yield from (test for test in finder.find(module, found.name) if test.examples)


@pytest.mark.parametrize("example", list(examples()), ids=lambda example: example.name)
def test_the_example_of_a_docstring_runs(example):
    said = []
    assert doctest.DocTestRunner().run(example, out=said.append).failed == 0, "".join(said)


PUBLIC = [answer_queries, count, plan, select, top_k, verify]


@pytest.mark.parametrize(
    "function", [*PUBLIC, Histogram.from_table, Histogram.from_pairs, Histogram.from_counts], ids=lambda f: f.__name__
)
def test_what_a_user_calls_first_says_all(function):
    text = function.__doc__
    for section in ("Args:", "Returns:", "Raises:", "Example:"):
        assert section in text, section
    for name in function.__annotations__.keys() - {"return", "parameters"}:
        assert f" {name}:" in text, name
