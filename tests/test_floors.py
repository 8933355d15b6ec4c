"""The floors of the project: no import breaks a rule of `floors.py`, and each rule detects a violation."""

import ast
import re
import subprocess
import sys

import pytest

from floors import (
    HEAVY,
    PACKAGE,
    RUST,
    TERMINAL,
    circles,
    core_imports,
    hidden_imports,
    lazy_imports,
    map_violations,
    parsed,
    rust_circles,
    tree,
    unreadable_imports,
    upward_imports,
)


def test_python_imports_point_down():
    assert list(upward_imports(PACKAGE)) == []


def test_imports_inside_a_package_have_no_cycles():
    assert list(circles(PACKAGE)) == []
    assert list(hidden_imports(PACKAGE)) == []


def test_all_imports_are_absolute_statements():
    assert list(unreadable_imports(PACKAGE)) == []


def test_theorems_of_papers_do_not_import_the_core():
    assert list((PACKAGE / "theorems").glob("*[0-9].py"))
    assert list(core_imports(PACKAGE / "theorems")) == []


def test_lazy_names_are_those_that_the_rules_read():
    assert list(lazy_imports(PACKAGE)) == []


def test_few_types_are_left_open():
    files = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pyi")]
    assert sum(len(re.findall(r"\bAny\b", path.read_text("utf-8"))) for path in files) <= 110


def lines_of_code(text, function):
    """Return the number of lines of a function that have code, and not its docstring or a comment alone."""
    texts = {
        line
        for node in ast.walk(function)
        if isinstance(node, ast.Expr) and isinstance(getattr(node.value, "value", None), str)
        for line in range(node.lineno, node.end_lineno + 1)
    }
    lines = enumerate(text.splitlines(), 1)
    own = range(function.lineno, function.end_lineno + 1)
    return sum(n in own and n not in texts and line.strip()[:1] not in ("", "#") for n, line in lines)


def long_functions(package, limit=80):
    for path in package.rglob("*.py"):
        text = path.read_text("utf-8")
        functions = (node for node in ast.walk(tree(text)) if isinstance(node, ast.FunctionDef))
        yield from (f"{path.name}: {one.name}" for one in functions if lines_of_code(text, one) > limit)


def test_no_function_is_longer_than_80_lines_of_code(tmp_path):
    assert list(long_functions(PACKAGE)) == []
    body = '    """Text\n    of two lines."""\n\n    # comment\n' + "    x = 1\n" * 79
    (tmp_path / "a.py").write_text(f"def short():\n{body}\n\ndef long():\n{body}    x = 2\n")
    assert list(long_functions(tmp_path)) == ["a.py: long"]


def loaded(code):
    """Return the modules that are loaded after some code."""
    command = [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)"]
    return {*subprocess.run(command, check=True, capture_output=True, text=True).stderr.split()}


RARE = {"difflib", "gzip", "html", "random", "secrets", "shutil", "statistics", "tempfile", "numpy.typing"}
COUNT = """
import discreet
log = {"user": [*range(5000)], "page": ["home"] * 5000}
discreet.count(log, user="user", item="page", rho=1, delta=1e-6)
"""


def test_importing_the_package_loads_no_other_package():
    assert loaded("import discreet") & ({"numpy", "discreet._core", "discreet.api"} | RARE | HEAVY | TERMINAL) == set()


@pytest.mark.parametrize("arguments", [["--help"], ["count", "--help"], ["conut"]])
def test_help_loads_no_library(arguments):
    run = f"import discreet.cli\ntry:\n    discreet.cli.main({arguments})\nexcept SystemExit:\n    pass"
    assert loaded(run) & ({"numpy", "rich", "discreet.api", "discreet.mechanisms.base"} | HEAVY) == set()


def test_a_count_loads_no_rare_modules():
    modules = loaded(COUNT)
    assert (modules - loaded("import numpy")) & (RARE | HEAVY | TERMINAL | {"hashlib"}) == set()
    ours = {name for name in modules if name.startswith("discreet.")}
    assert not {"discreet.budgets.budget", "discreet.queries.answers", "discreet.streams.base"} & ours


def test_rust_modules_use_only_lower_modules():
    assert list(map_violations(RUST)) == []


def test_rust_modules_have_no_cycles():
    assert list(rust_circles(RUST)) == []


def test_the_package_init_only_lists_names():
    docstring, *imports, lazy = parsed(PACKAGE / "__init__.py").body
    assert isinstance(ast.literal_eval(docstring.value), str)
    assert {type(node) for node in [*imports, *lazy.body]} == {ast.ImportFrom}
    assert ast.unparse(lazy.orelse[0].targets[0]) == "(__getattr__, __dir__, __all__)"


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("privacy/guarantee.py", "from discreet.api import count"),
        ("tables/histogram.py", "import discreet.release.export"),
        ("release/rows.py", "def f():\n    from discreet import tables"),
        ("errors.py", "import discreet"),
        ("reference/union.py", "from discreet import _core"),
        ("engines/rows.py", "if TYPE_CHECKING:\n    from discreet.tables.histogram import Histogram as Table"),
        ("engines/rows.py", "try:\n    import discreet.tables.histogram as table\nexcept ImportError:\n    pass"),
        ("_core.pyi", "from discreet.theorems import tails"),
        ("unknown.py", ""),
    ],
)
def test_an_upward_import_is_detected(tmp_path, module, text):
    (tmp_path / module).parent.mkdir(exist_ok=True)
    (tmp_path / module).write_text(text)
    assert len(list(upward_imports(tmp_path))) == 1


STREAM = "from discreet.streams.stream import Stream"


@pytest.mark.parametrize(
    ("modules", "found"),
    [
        ({"budgets/a": "from discreet.budgets.b import X", "budgets/b": "import discreet.budgets.a"}, 1),
        ({"budgets/a": "from discreet.budgets import b", "budgets/b": "from discreet.budgets import a"}, 1),
        ({"budgets/__init__": "from discreet.budgets.a import X", "budgets/a": "from discreet.budgets import Y"}, 1),
        ({"laws/a/b": "from discreet.laws.c.d import X", "laws/c/e": "from discreet.laws.a import X"}, 1),
        ({"laws/a/b": "from discreet.laws.c import X", "laws/c": ""}, 0),
        ({"laws/a": "if TYPE_CHECKING:\n    import discreet.laws.b", "laws/b": "import discreet.laws.a"}, 1),
        ({"streams/a": STREAM, "streams/stream": "from discreet.streams import a"}, 1),
        ({"streams/a": f"if TYPE_CHECKING:\n    {STREAM}", "streams/stream": "from discreet.streams import a"}, 0),
        ({"streams/a": f"if TYPE_CHECKING:\n    {STREAM}\n{STREAM}", "streams/stream": "import discreet.streams.a"}, 1),
        (
            {
                "streams/__init__": f"from discreet.names import lazy\nif TYPE_CHECKING:\n    {STREAM}",
                "streams/stream": "import discreet.streams",
            },
            1,
        ),
        (
            {
                "streams/a": f"if TYPE_CHECKING:\n    pass\nelse:\n    {STREAM}",
                "streams/stream": "import discreet.streams.a",
            },
            1,
        ),
    ],
)
def test_an_import_cycle_is_detected(tmp_path, modules, found):
    for name, text in modules.items():
        path = tmp_path / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert len(list(circles(tmp_path))) == found


def test_an_import_in_a_function_is_detected(tmp_path):
    (tmp_path / "api.py").write_text("def f():\n    from discreet import planning\n    import polars")
    assert list(hidden_imports(tmp_path)) == ["api.py imports discreet.planning in f"]


LAZY = """
from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.laws import joint
    from discreet.tables.histogram import Histogram
    from discreet.tables.table import Table as Table
else:
    __getattr__, __dir__, __all__ = lazy(
        __name__, {"laws": "joint", "tables.histogram": "Histogram"}, inner={"tables.table": "Table"}
    )
"""


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        ("", "", []),
        ("joint", "", ["lists discreet.laws.joint once"]),
        ('"tables.table": "Table"', "", ["lists discreet.tables.table.Table once"]),
        (
            "import Histogram",
            "import Counts",
            ["discreet.tables.histogram.Counts", "discreet.tables.histogram.Histogram"],
        ),
        ('"Histogram"', '"Histogram a"', ["lists discreet.tables.histogram.a once"]),
        ('"Histogram"', '"Histogram b"', ["lists discreet.tables.histogram.b once", "has a module b"]),
        ("__name__, ", "'discreet', ", ["in another form"]),
        ("lazy(\n", "load(\n", ["in another form"]),
        ("import lazy", "import lazy as load", ["in another form"]),
        ("from discreet.names import lazy", "from discreet import names", ["in another form"]),
        ("else:", "if True:", ["in another form"]),
        ("TYPE_CHECKING:", "LATER:", ["in another form"]),
        ("if TYPE", "api = lazy('discreet', {'api': 'count'})[0]\nif TYPE", ["in another form"]),
        ("else:", "else:\n    import discreet.names\n", ["in another form"]),
    ],
)
def test_a_hidden_lazy_name_is_detected(tmp_path, before, after, found):
    (tmp_path / "laws").mkdir()
    (tmp_path / "laws" / "b.py").write_text("")
    text = LAZY.replace(before, after, 1) if before != "joint" else LAZY.replace('"laws": "joint", ', "")
    (tmp_path / "laws" / "__init__.py").write_text(text)
    said = list(lazy_imports(tmp_path))
    assert len(said) == len(found)
    assert all(part in line for part, line in zip(found, said, strict=True)), said


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("from importlib import import_module as load", "imports importlib.import_module"),
        ("import importlib.util", "imports importlib.util"),
        ("load = __import__", "uses __import__"),
        ("import builtins\nbuiltins.exec('import x')", "uses exec"),
        ("import sys\nsys.modules['discreet.api']", "names discreet.api"),
    ],
)
def test_an_import_that_no_rule_can_read_is_detected(tmp_path, text, found):
    (tmp_path / "api.py").write_text(text)
    assert list(unreadable_imports(tmp_path)) == [f"api.py {found}"]


@pytest.mark.parametrize(
    "text",
    [
        "from discreet import _core",
        "from discreet._core import Noise",
        "import discreet._core as core",
        "from discreet.theorems import tails",
        "from discreet.theorems.sums import bound",
    ],
)
def test_a_theorem_that_uses_the_core_is_detected(tmp_path, text):
    texts = {
        "a2020": text,
        "b2021": "",
        "sums": "from discreet.theorems.tails import x",
        "tails": "import discreet._core",
    }
    for name, content in texts.items():
        (tmp_path / f"{name}.py").write_text(content)
    assert list(core_imports(tmp_path)) == ["a2020"]


@pytest.mark.parametrize(
    ("file", "text", "used"),
    [
        ("low.rs", "use crate::deep::X;", "deep"),
        ("low.rs", "use crate::{error::Y, deep::{A, B}};", "deep"),
        ("low.rs", "use crate::{\n    error::{C, D},\n    deep,\n};", "deep"),
        ("low/a.rs", "use super::super::deep::X;", "deep"),
        ("low/mod.rs", "use super::{deep::X};", "deep"),
        ("low.rs", "use self::super::deep::X;", "deep"),
        ("low.rs", "#[cfg(test)]\nmod tests {\n    use crate::top;\n}\n\nuse crate::deep::X;", "deep"),
        ("low.rs", "use crate::*;", "*"),
        ("low.rs", "use crate as root;", "*"),
    ],
)
def test_a_rust_module_off_its_floor_is_detected(tmp_path, file, text, used):
    (tmp_path / "lib.rs").write_text("//! ```text\n//! top   x\n//! low deep   y\n//! error\n//! ```\n")
    (tmp_path / "low").mkdir()
    for name, content in {"top.rs": "use crate::low::X;", "deep.rs": "", "new.rs": "", file: text}.items():
        (tmp_path / name).write_text(content)
    assert list(map_violations(tmp_path)) == [f"low uses {used}", "new is not on the map"]


@pytest.mark.parametrize(
    ("parent", "child", "found"),
    [
        ("mod b;\nuse crate::a::b::X;", "use crate::a::Y;", 1),
        ("mod b;\npub use b::X;", "use super::{Y, super::c::Z};", 1),
        ("mod b;", "use crate::{c, a::b::{self, W}};\npub(super) fn f() {}", 0),
        ("mod b;\npub use b::X;", "#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n", 0),
    ],
)
def test_a_rust_cycle_is_detected(tmp_path, parent, child, found):
    (tmp_path / "a").mkdir()
    for name, content in {"lib.rs": "mod a;", "c.rs": "", "a/mod.rs": parent, "a/b.rs": child}.items():
        (tmp_path / name).write_text(content)
    assert len(list(rust_circles(tmp_path))) == found


WORDS = {"made_by", "measure", "note", "notes", "message", "mechanism"}
READER = PACKAGE / "release" / "made_by.py"
"""The module that reads certificates and ledgers, whose texts are the only record of a mechanism."""


def readings_of_words(text):
    """Yield the lines on which a decision follows from the words of a note, a measure, a repr or an error."""

    def is_words(node):
        name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
        called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
        return name in WORDS or called == "repr" or (called == "str" and ast.unparse(node) == "str(error)")

    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            asked = node.func.attr in ("startswith", "endswith", "find", "index", "partition", "rpartition", "split")
            matched = node.func.attr in ("match", "fullmatch", "search", "finditer", "findall")
            if (asked and is_words(node.func.value)) or (matched and any(map(is_words, node.args))):
                yield node.lineno
        contains = isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn)
        if contains and any(map(is_words, [node.left, *node.comparators])):
            yield node.lineno


def test_no_behaviour_follows_from_the_words_of_a_text():
    files = [path for path in sorted(PACKAGE.rglob("*.py")) if path != READER]
    found = {path.name: [*readings_of_words(path.read_text("utf-8"))] for path in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "text",
    [
        "release.made_by.startswith('KnownItems(')",
        "any(note.startswith('counts') for note in release.notes)",
        "text in release.notes",
        "'sum' in release.measure",
        "re.match('l0', repr(mechanism))",
        "str(error).endswith('!')",
        "repr(mechanism).partition('(')",
        "self.mechanism.startswith(WORST)",
        "error.message.startswith('Got unexpected')",
        "'pip install' in str(error)",
    ],
)
def test_a_decision_by_words_is_detected(text):
    assert [*readings_of_words(text)] == [1]
