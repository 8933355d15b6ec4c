"""Options that functions share: signatures and docstrings show them, and wrong names get the right one."""

import inspect
import re

import pytest

import discreet as dp
from discreet.engines.table import Columns, Table
from discreet.release.provenance import ReleaseTexts
from discreet.releasing import Options
from discreet.signatures import described

LOG = {"user": [1, 2], "page": ["a", "b"]}
VERBS = {"count": {}, "top_k": {"k": 1}, "select": {}, "sum": {"bounds": (0, 1)}, "aggregate": {}}
READERS = [dp.Histogram.from_table, dp.tables.UserItems.from_table, dp.Shape.of, dp.Plume.release, dp.Budget.release]


def test_every_option_is_described_once():
    for group in (Columns, ReleaseTexts):
        assert re.findall(r"^(\w+): ", described(group), re.MULTILINE) == [*group.__annotations__]
    assert Options.__annotations__.keys() == Columns.__annotations__.keys() | ReleaseTexts.__annotations__.keys()


@pytest.mark.parametrize("verb", VERBS)
def test_a_signature_shows_the_options_in_order(verb):
    shown = [*inspect.signature(getattr(dp, verb)).parameters]
    assert shown[1 : len(Columns.__annotations__) + 1] == [*Columns.__annotations__]
    assert shown[-len(ReleaseTexts.__annotations__) :] == [*ReleaseTexts.__annotations__]
    assert not any("*" in name or name == "options" for name in shown)


@pytest.mark.parametrize(
    "function", [*(getattr(dp, verb) for verb in VERBS), *READERS], ids=lambda given: given.__name__
)
def test_options_have_the_defaults_and_texts_of_a_table(function):
    parameters, own = inspect.signature(function).parameters, inspect.signature(Table.__init__).parameters
    for name in Columns.__annotations__:
        expected = None if name in ("user", "item") else own[name].default
        assert (parameters[name].default, parameters[name].kind.name) == (expected, "KEYWORD_ONLY")
    assert described(Columns).splitlines()[0] in function.__doc__
    assert "**options:" not in function.__doc__
    assert "**columns:" not in function.__doc__


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(("wrong", "right"), [("usr", "user"), ("espilon", "epsilon"), ("lable", "label")])
def test_a_wrong_name_gets_the_one_that_it_may_mean(verb, wrong, right):
    with pytest.raises(
        TypeError, match=rf"{verb}\(\) got an unexpected keyword argument '{wrong}'; did you mean '{right}'"
    ):
        getattr(dp, verb)(LOG, item="page", **{wrong: "user"}, delta=1e-6, **VERBS[verb])


@pytest.mark.parametrize("reads", READERS[:3], ids=lambda given: given.__qualname__)
def test_a_reader_suggests_the_right_name_too(reads):
    with pytest.raises(TypeError, match="unexpected keyword argument 'usr'; did you mean 'user'"):
        reads(LOG, usr="user", item="page")
