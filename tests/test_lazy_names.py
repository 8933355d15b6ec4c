"""Lazy public names behave like other names for `dir`, `help`, star imports, pickling and threads."""

import pickle
import pydoc
import subprocess
import sys

import pytest

import discreet as dp
from discreet import names
from discreet.cli import commands

PACKAGES = ["discreet", *(f"discreet.{name}" for name in names.MODULES)]


def run(code):
    """Return the output of code in a new process, in which no lazy name is imported yet."""
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.parametrize("package", PACKAGES)
def test_a_star_import_and_dir_have_the_public_names_alone(package):
    code = f"import {package} as p\nlisted = [*{{*dir(p)}} ^ {{*p.__all__}}]\nfrom {package} import *\n"
    code += "print(*sorted(listed), [n for n in p.__all__ if globals()[n] is not getattr(p, n)])"
    assert run(code).split() == [*(names.MODULES if package == "discreet" else ()), "[]"]


def test_help_lists_the_functions_and_classes():
    text = run("import discreet, pydoc\nprint(pydoc.render_doc(discreet, renderer=pydoc.plaintext))")
    assert "class Histogram(" in text
    assert "answer_queries(values: " in text
    assert "Return" in pydoc.render_doc(dp.count)


@pytest.mark.parametrize("name", [name for name in dp.__all__ if name != "__version__"])
def test_a_public_name_is_pickled_by_reference(name):
    dumped = pickle.dumps(getattr(dp, name))
    loaded = f"import discreet, pickle\nprint(pickle.loads({dumped!r}) is discreet.{name})"
    assert name not in ("Histogram", "count") or run(loaded) == "True\n"
    assert pickle.loads(dumped) is getattr(dp, name)


def test_a_submodule_can_be_imported_before_and_after_its_names():
    code = "import discreet\n{}\nprint(discreet.tables.Histogram is discreet.Histogram, discreet.planning.plan.plan)"
    for first in ("import discreet.planning.plan", "discreet.Histogram; import discreet.planning.plan"):
        assert run(code.format(first)).startswith("True <function plan")


def test_a_mechanism_starts_a_stream_before_the_stream_is_named():
    mechanism = "discreet.BinaryMechanism.from_rho(rho=1.0, delta=1e-6, horizon=4, l0=1)"
    assert run(f"import discreet\nprint({mechanism}.start().round)") == "0\n"


def test_threads_that_use_a_name_first_at_once_get_one_object():
    code = (
        "import discreet\nfrom concurrent.futures import ThreadPoolExecutor as Pool\nwith Pool(8) as pool:\n"
        "    print(len({*pool.map(lambda _: discreet.count, range(64))}))"
    )
    assert run(code) == "1\n"


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package):
    module = __import__(package, fromlist=["x"])
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'nothing'"):
        module.nothing  # noqa: B018
    assert not hasattr(module, "__wrapped__")


@pytest.mark.parametrize("name", commands.SUMMARIES)
def test_the_summary_of_a_command_is_its_short_help(name):
    command = getattr(commands, name.replace("-", "_"))
    assert command.name == name
    assert commands.SUMMARIES[name] == command.get_short_help_str(100)
