"""Docstrings: examples run, and public names describe their arguments."""

import doctest
import importlib
import inspect
import pkgutil
import re

import pytest

import discreet
from discreet.names import MODULES


def examples():
    """Yield all docstrings with examples, once each."""
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


def public_names():
    """Return public classes and functions by their full names, once each."""
    found = {}
    for name in ["discreet", *(f"discreet.{module}" for module in MODULES)]:
        module = importlib.import_module(name)
        for member in module.__all__:
            value = getattr(module, member)
            if inspect.isclass(value) or inspect.isfunction(value):
                found.setdefault(value, f"{name}.{member}")
    return {name: value for value, name in found.items()}


PUBLIC = public_names()


def parameters_of(function):
    """Return the names of the parameters that a caller can give."""
    names = inspect.signature(function).parameters
    return [name for name in names if name not in ("self", "cls") and not name.startswith("_")]


def methods_of(kind):
    """Yield the public functions in the body of a class, with their docstrings and those of what they override."""
    for name, member in vars(kind).items():
        function = getattr(member, "__func__", member)
        if not name.startswith("_") and inspect.isfunction(function):
            made = [vars(base)[name] for base in kind.__mro__ if name in vars(base)]
            yield name, function, "\n".join(text for text in map(inspect.getdoc, made) if text)


def lacks(function, text, sections):
    """Return the sections and parameters that a docstring does not describe."""
    names = parameters_of(function)
    wanted = [*(["Args:"] if names else []), *sections, *(f"{name}:" for name in names)]
    return [part for part in wanted if part not in (text or "")]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_docstring_has_arguments_and_an_example(name):
    value = PUBLIC[name]
    if inspect.isclass(value):
        if issubclass(value, Exception) or inspect.isabstract(value):
            assert value.__doc__
        else:
            assert lacks(value, value.__doc__, ["Example:"]) == []
    else:
        assert lacks(value, value.__doc__, ["Returns:", "Example:"]) == []


CLASSES = [name for name in PUBLIC if inspect.isclass(PUBLIC[name])]
MAKERS = ("from_rho", "from_epsilon")


@pytest.mark.parametrize("name", CLASSES)
def test_a_public_method_describes_its_arguments(name):
    methods = [made for made in methods_of(PUBLIC[name]) if made[0] not in MAKERS]
    without = {method: lacks(function, text, []) for method, function, text in methods}
    assert {method: parts for method, parts in without.items() if parts} == {}


@pytest.mark.parametrize("name", [name for name in CLASSES if hasattr(PUBLIC[name], "from_rho")])
def test_the_class_describes_the_arguments_of_its_makers(name):
    kind = PUBLIC[name]
    for maker in (getattr(kind, maker) for maker in MAKERS if hasattr(kind, maker)):
        text, known = inspect.getdoc(maker), ("rho", "epsilon", "delta")
        assert "rho" in text or "epsilon" in text
        for parameter in parameters_of(maker):
            assert parameter in known or f"{parameter}:" in kind.__doc__ or re.search(rf"\b{parameter}\b", text)
