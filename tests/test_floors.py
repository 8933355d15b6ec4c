"""The layers of the project, called floors: a module may import only from lower floors, in Python and in Rust.

Modules and packages directly under `discreet` have a floor. A room is such a module or package.
"""

import ast
import re
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "discreet"
RUST = ROOT / "rust"

# Top to bottom. A module may import from lower floors. Modules of one package may import each other without cycles.
FLOORS = [
    {"__main__", "sklearn"},
    {"cli"},
    {"__init__"},
    {"api", "audit", "certificate", "demo"},
    {"budgets"},
    {"laws", "planning"},
    {"queries", "streams"},
    {"testing", "mechanisms"},
    {"tables", "release"},
    {"engines"},
    {"theorems"},
    {"reference", "_core"},
    {"privacy", "private"},
    {"cached", "errors", "names", "wording"},
    {"startup"},
]
LEVEL = {name: level for level, names in enumerate(FLOORS) for name in names}
HEAVY = {"duckdb", "polars", "pandas", "pyarrow", "matplotlib", "pyspark", "ibis"}
TERMINAL = {"click", "rich"}
MUTUAL = {"discreet.streams.stream.Stream"}
"""Types in import cycles for type checking only: a stream has a mechanism, and a mechanism starts a stream."""


def room(path, package):
    """Return the name of the module directly in the package, or of the directory there that contains the file."""
    return path.relative_to(package).parts[0].removesuffix(".py")


def imported(tree):
    """Yield the full names that a module imports, also in functions and in type-checking blocks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def upward_imports(package):
    """Yield a sentence for each import from the same floor or a higher floor."""
    for path in sorted(package.rglob("*.py")):
        here = room(path, package)
        if here not in LEVEL:
            yield f"{here} has no floor"
            continue
        for name in imported(ast.parse(path.read_text("utf-8"))):
            parts = name.split(".")
            if parts[0] != "discreet":
                continue
            there = parts[1] if len(parts) > 1 and parts[1] in LEVEL else "__init__"
            inside = here == there and (package / here).is_dir()
            if not inside and LEVEL[there] <= LEVEL[here]:
                yield f"{path.relative_to(package)} imports {there}"


def types_alone(tree):
    """Yield the full names that a module imports only for type checking."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            yield from imported(node)


def circles(package):
    """Yield import cycles, direct or indirect, among the modules and packages of one folder."""
    for folder in sorted(path for path in package.rglob("*") if path.is_dir()):
        place = ["discreet", *folder.relative_to(package).parts]
        rooms = {room(path, folder) for path in folder.rglob("*.py")}
        below = {name: set() for name in rooms}
        for path in sorted(folder.rglob("*.py")):
            tree = ast.parse(path.read_text("utf-8"))
            for name in {*imported(tree)} - ({*types_alone(tree)} & MUTUAL):
                parts = name.split(".")
                if parts[: len(place)] == place:
                    there = parts[len(place)] if len(parts) > len(place) else "__init__"
                    below[room(path, folder)].add(there if there in rooms else "__init__")
        for name, used in below.items():
            used.discard(name)
        try:
            tuple(TopologicalSorter(below).static_order())
        except CycleError as error:
            yield f"{'.'.join(place)}: {' and '.join(error.args[1])}"


def hidden_imports(package):
    """Yield imports of discreet inside functions: such imports hide cycles."""
    for path in sorted(package.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = {name for name in imported(node) if name.split(".")[0] == "discreet"}
                yield from (f"{path.relative_to(package)} imports {name} in {node.name}" for name in sorted(names))


def eager_imports(package):
    """Yield imports of heavy libraries at the top of a module: only some functions need these libraries."""
    for path in sorted(package.rglob("*.py")):
        allowed = TERMINAL if room(path, package) == "cli" else set()
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {name.split(".")[0] for name in imported(ast.Module([node], []))}
                for name in sorted(names & (HEAVY | TERMINAL) - allowed):
                    yield f"{path.relative_to(package)} imports {name} at the top"


def map_violations(root):
    """Yield Rust modules that use a module not below them on the map in lib.rs, or that are not on the map."""
    text = (root / "lib.rs").read_text("utf-8")
    lines = re.findall(r"^//! ([a-z_ ]*?)(?:  |$)", text.split("```text")[1].split("//! ```")[0], re.MULTILINE)
    floor = {name: number for number, line in enumerate(reversed(lines)) for name in line.split()}
    for path in sorted(root.rglob("*.rs")):
        name = path.relative_to(root).parts[0].removesuffix(".rs")
        if name == "lib":
            continue
        if name not in floor:
            yield f"{name} is not on the map"
            continue
        code = re.sub(r"//.*", "", path.read_text("utf-8").split("#[cfg(test)]\nmod tests")[0])
        for used in sorted(set(re.findall(r"crate::(\w+)", code)) - {name}):
            if floor.get(used, 99) >= floor[name]:
                yield f"{name} uses {used}"


def test_python_imports_point_down():
    assert list(upward_imports(PACKAGE)) == []


def test_imports_inside_a_package_have_no_cycles():
    assert list(circles(PACKAGE)) == []
    assert list(hidden_imports(PACKAGE)) == []


def test_theorems_of_papers_do_not_import_the_core():
    papers = sorted((PACKAGE / "theorems").glob("*[0-9].py"))
    assert papers
    for path in papers:
        assert "discreet._core" not in imported(ast.parse(path.read_text("utf-8"))), path.name


def test_heavy_libraries_are_imported_lazily():
    assert list(eager_imports(PACKAGE)) == []


def test_importing_the_package_loads_no_rare_modules():
    def loaded(package):
        command = [sys.executable, "-c", f"import sys, {package}; print(*sys.modules)"]
        return {*subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()}

    rare = {"difflib", "gzip", "html", "random", "secrets", "shutil", "statistics", "tempfile", "numpy.typing"}
    assert (loaded("discreet") - loaded("numpy")) & (rare | HEAVY | TERMINAL) == set()


def test_rust_modules_use_only_lower_modules():
    assert list(map_violations(RUST)) == []


def test_the_package_init_only_lists_names():
    tree = ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))
    kinds = {type(node) for node in tree.body}
    assert kinds == {ast.Expr, ast.ImportFrom, ast.Assign}
    names = next(ast.literal_eval(node.value) for node in tree.body if isinstance(node, ast.Assign))
    assert names == sorted(names)


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("privacy/guarantee.py", "from discreet.api import count"),
        ("tables/histogram.py", "import discreet.release.export"),
        ("release/rows.py", "def f():\n    from discreet import tables"),
        ("errors.py", "import discreet"),
        ("reference/union.py", "from discreet import _core"),
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


def test_an_eager_import_is_detected(tmp_path):
    (tmp_path / "api.py").write_text("import numpy\nimport duckdb\ndef f():\n    import polars")
    (tmp_path / "cli.py").write_text("import click")
    assert list(eager_imports(tmp_path)) == ["api.py imports duckdb at the top"]


def test_a_rust_module_off_its_floor_is_detected(tmp_path):
    (tmp_path / "lib.rs").write_text("//! ```text\n//! top   x\n//! low deep   y\n//! ```\n")
    for name, text in {"top": "use crate::low::X;", "low": "use crate::deep::X;", "deep": "", "new": ""}.items():
        (tmp_path / f"{name}.rs").write_text(text)
    assert list(map_violations(tmp_path)) == ["low uses deep", "new is not on the map"]
