"""Options of the command: they are the parameters of the functions, and their help fits a terminal."""

import inspect
import re
from typing import get_args

import click
import command
import pytest
from command import output

import discreet as dp
from discreet.budgets.filter import Charging
from discreet.cli import commands
from discreet.cli.described import Described, described
from discreet.engines.projection import EVERY, UserUnit
from discreet.mechanisms.parameters import RELATIVE_ERROR
from discreet.mechanisms.union.methods import UNION_METHODS

VERBS = {"count": "count", "top_k": "top-k", "select": "select", "sum": "sum", "aggregate": "aggregate"}
ONLY_IN_PYTHON = {"data", "budget", "progress"}


def every_command(group=None, words=()):
    """Yield the words of all commands and groups."""
    yield words
    named = commands.SUMMARIES if group is None else group.commands
    for name in named:
        one = getattr(commands, name.replace("-", "_")) if group is None else group.commands[name]
        if isinstance(one, click.Group):
            yield from every_command(one, (*words, name))
        else:
            yield (*words, name)


@pytest.mark.parametrize("words", [*every_command()], ids=" ".join)
def test_help_fits_80_columns(words, monkeypatch):
    monkeypatch.setitem(command.WIDTH, "COLUMNS", "80")
    lines = output(*words, "--help")[0].splitlines()
    assert [line for line in lines if len(line) > 80] == []
    assert "`int`" not in "".join(lines)


@pytest.mark.parametrize("name", VERBS.values())
def test_the_options_of_a_verb_are_in_groups(name):
    text = output(name, "--help")[0]
    titles = ["Data:", "Privacy:", "Mechanism:", "Output:", "Budget:"]
    assert [line for line in text.splitlines() if re.fullmatch(r"\w+:", line)] == titles
    kept = text.partition("Privacy:\n")[2].partition("Mechanism:")[0]
    assert re.findall(r"^  (--\w+)", kept, re.MULTILINE) == ["--rho", "--epsilon", "--delta", "--unit"]


@pytest.mark.parametrize(("verb", "name"), VERBS.items())
def test_every_parameter_of_a_verb_is_an_option(verb, name):
    parameters = inspect.signature(getattr(dp, verb)).parameters
    options = {one.name: one for one in getattr(commands, name.replace("-", "_")).params}
    assert parameters.keys() - ONLY_IN_PYTHON <= options.keys()
    assert described(verb).keys() == parameters.keys() - {"data"}
    for key, one in described(verb).items():
        own = parameters[key].default
        assert one.default in (None, own), key
        if isinstance(getattr(options.get(key), "type", None), click.Choice) and key != "mechanism":
            assert own is None or own in options[key].type.choices
        assert not re.search(r"[`{}]|None|--int", getattr(options.get(key), "help", None) or ""), key


def test_options_take_the_values_of_the_library():
    choices = {
        one.name: getattr(one.type, "choices", None)
        for verb in ("count", "select")
        for one in getattr(commands, verb).params
    }
    assert (*choices["every"],) == EVERY
    assert (*choices["unit"],) == get_args(UserUnit)
    assert (*choices["charge"],) == get_args(Charging)
    assert (*choices["method"],) == ("auto", "threshold", "dp_sips", *UNION_METHODS)
    assert f"{RELATIVE_ERROR} by default" in described("count")["relative_error"].text


def test_a_description_speaks_of_options_and_leaves_out_python():
    text = (
        'The most items; `k` by default. It is `Release.l0`. "auto" needs `items`. `l0="auto"` is (`Table`). Give 1.5.'
    )
    shown = Described("int", None, text).help({"k": "-k", "items": "--items", "l0": "--l0"})
    assert shown == "The most items; -k by default. auto needs --items. Give 1.5."
    assert Described("int", None, 'As `l0="auto"` says.').help({"l0": "--l0"}) == "As --l0 auto says."
