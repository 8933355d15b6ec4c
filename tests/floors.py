"""The rules of imports, as functions that yield violations. `test_floors.py` runs them.

The layers of the project are called floors: a module may import only from lower floors, in Python and in Rust.
Modules and packages directly under `discreet` have a floor. A room is such a module or package.
"""

import ast
import re
from functools import cache
from graphlib import CycleError, TopologicalSorter
from itertools import dropwhile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "python" / "discreet"
RUST = ROOT / "rust"

# Top to bottom. A module may import from lower floors. Modules of one package may import each other without cycles.
FLOORS = [
    {"__main__"},
    {"cli"},
    {"__init__"},
    {"api", "audit", "certificate", "demo", "sums"},
    {"releasing"},
    {"budgets"},
    {"laws", "planning"},
    {"queries", "streams"},
    {"testing", "mechanisms"},
    {"tables", "release"},
    {"engines"},
    {"theorems"},
    {"reference", "_core"},
    {"formats", "privacy", "private", "progress"},
    {"cached", "errors", "logs", "names", "signatures"},
    {"wording"},
    {"imports"},
    {"startup"},
]
LEVEL = {name: level for level, names in enumerate(FLOORS) for name in names}
HEAVY = {"duckdb", "polars", "pandas", "pyarrow", "matplotlib", "pyspark", "ibis"}
TERMINAL = {"click", "rich"}
AT_RUN_TIME = {"importlib", "pkgutil", "runpy"}
RESOLVER = "release/made_by.py"
"""The only other file that uses these names: it makes the mechanism that a text names, which no import shows."""
DYNAMIC = "names.py"
"""The only file that imports modules by their names at run time: lazy names on first use, and moved names."""
MUTUAL = {"discreet.streams.stream.Stream"}
"""Types in import cycles for type checking only: a stream has a mechanism, and a mechanism starts a stream."""


def sources(package):
    """Return the Python files and stubs of a package or folder."""
    return sorted([*package.rglob("*.py"), *package.rglob("*.pyi")])


def parsed(path):
    return tree(path.read_text("utf-8"))


tree = cache(ast.parse)


def room(path, package):
    """Return the name of the module directly in the package, or of the directory there that contains the file."""
    return path.relative_to(package).parts[0].partition(".")[0]


def names_of(node):
    """Return the full names that a node imports. Relative names begin with dots."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{'.' * node.level}{f'{node.module}.' if node.module else ''}{alias.name}" for alias in node.names]
    return []


def statements(node):
    """Yield the statements directly in a node. Imports are statements, so expressions need no search."""
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        yield from getattr(node, field, [])


def imported(node):
    """Yield the full names that a node imports, also in functions and in type-checking blocks."""
    yield from names_of(node)
    for child in statements(node):
        yield from imported(child)


def imported_at_run_time(node):
    """Yield the full names that a module imports outside type-checking blocks."""
    yield from names_of(node)
    is_typing = isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")
    for child in node.orelse if is_typing else statements(node):
        yield from imported_at_run_time(child)


def unreadable_imports(package):
    """Yield imports by name at run time, which the other rules cannot see. Ruff refuses relative imports."""
    for path in sources(package):
        tree, file = parsed(path), path.relative_to(package).as_posix()
        if file == DYNAMIC:
            continue
        yield from (f"{file} imports {name}" for name in imported(tree) if name.split(".")[0] in AT_RUN_TIME)
        # Not only calls, since `load = __import__` would hide one. An empty text imports nothing.
        empty = {
            id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node) == "exec('')"
        }
        named = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(tree) if id(node) not in empty}
        yield from (f"{file} uses {name}" for name in sorted(named & {"__import__", "exec", "eval"}))
        # `sys.modules` is read for libraries only.
        texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
        yield from (f"{file} names {name}" for name in sorted(texts & {f"discreet.{name}" for name in LEVEL}))


def upward_imports(package):
    """Yield a sentence for each import from the same floor or a higher floor."""
    for path in sources(package):
        here = room(path, package)
        if here not in LEVEL:
            yield f"{here} has no floor"
            continue
        for name in imported(parsed(path)):
            parts = name.split(".")
            if parts[0] != "discreet":
                continue
            there = parts[1] if len(parts) > 1 and parts[1] in LEVEL else "__init__"
            inside = here == there and (package / here).is_dir()
            if not inside and LEVEL[there] <= LEVEL[here]:
                yield f"{path.relative_to(package)} imports {there}"


def circles(package):
    """Yield import cycles, direct or indirect, among the modules and packages of one folder."""
    for folder in sorted(path for path in package.rglob("*") if path.is_dir()):
        place = ["discreet", *folder.relative_to(package).parts]
        rooms = {room(path, folder) for path in sources(folder)}
        below = {name: set() for name in rooms}
        for path in sources(folder):
            tree = parsed(path)
            typed_only = set() if uses_names(tree) else MUTUAL - {*imported_at_run_time(tree)}
            for name in {*imported(tree)} - typed_only:
                parts = name.split(".")
                if parts[: len(place)] == place:
                    there = parts[len(place)] if len(parts) > len(place) else "__init__"
                    below[room(path, folder)].add(there if there in rooms else "__init__")
        yield from (f"{'.'.join(place)}: {names}" for names in cycle(below))


def hidden_imports(package):
    """Yield imports of discreet inside functions: such imports hide cycles."""
    for path in sources(package):
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = {name for name in imported(node) if name.split(".")[0] == "discreet"}
                yield from (f"{path.relative_to(package)} imports {name} in {node.name}" for name in sorted(names))


def uses_names(tree):
    """Return whether a module imports `discreet.names`, which imports modules at run time."""
    return any(f"{name}.".startswith("discreet.names.") for name in imported(tree))


def lazy_table(tree):
    """Return the type-checking branch and the lazy names of a module with their places.

    The form is `if TYPE_CHECKING: from ... import ...`, `else: __getattr__, __dir__, __all__ = lazy(__name__, {...})`.
    Raises ValueError for another form.
    """
    try:
        (branch,) = (node for node in tree.body if isinstance(node, ast.If))
        (used,) = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "discreet.names")
        call = branch.orelse[0].value
        tables = [call.args[1], *(keyword.value for keyword in call.keywords if keyword.arg == "inner")]
        pairs = [pair for table in tables for pair in ast.literal_eval(table).items()]
    except (AttributeError, IndexError) as error:
        raise ValueError from error
    plain = ast.Call(call.func, [call.args[0], ast.Constant(0)], [])
    taken = ast.unparse([ast.Assign(branch.orelse[0].targets, plain, lineno=0), *branch.orelse[1:]])
    rest = ast.Module([node for node in tree.body if node not in (branch, used)], [])
    mentioned = {getattr(node, "id", "") for node in ast.walk(rest)}
    if (
        ast.unparse(branch.test) != "TYPE_CHECKING"
        or taken.strip() != "__getattr__, __dir__, __all__ = lazy(__name__, 0)"
        or {(alias.name, alias.asname) for alias in used.names} - {("lazy", None), ("deprecated", None)}
        or uses_names(rest)
        or mentioned & {"lazy", "deprecated"}
    ):
        raise ValueError
    return branch, pairs


def lazy_imports(package):
    """Yield lazy names that the other rules cannot see, and other uses of `discreet.names`.

    A lazy import can hide a cycle like an import in a function. So the type-checking branch, which the rules of cycles
    and floors read, must import the names of the table and no others.
    """
    for path in sources(package):
        tree, file = parsed(path), path.relative_to(package).as_posix()
        if not uses_names(tree) or (file == RESOLVER and [*imported(tree)].count("discreet.names.public") == 1):
            continue
        try:
            branch, listed = lazy_table(tree)
        except ValueError:
            yield f"{file} uses discreet.names in another form"
            continue
        pairs = {(f"discreet.{place}".rstrip("."), name) for place, names in listed for name in names.split()}
        once = {".".join(pair) for pair in pairs} ^ {*imported(ast.Module(branch.body, []))}
        yield from (f"{file} lists {name} once" for name in sorted(once))
        # A submodule with the name would hide the lazy name once it is imported.
        own = ".".join(["discreet", *path.relative_to(package).parent.parts])
        names = sorted(name for place, name in pairs if place != own and path.name == "__init__.py")
        yield from (f"{file} has a module {name}" for name in names if (path.parent / f"{name}.py").exists())


def core_imports(theorems):
    """Yield theorem files of papers that import the Rust core, directly or through another theorem file."""
    names = {path.stem: {*imported(parsed(path))} for path in sources(theorems)}
    below = {
        stem: {other for other in names if any(f"{name}.".startswith(f"discreet.theorems.{other}.") for name in found)}
        for stem, found in names.items()
    }
    reach = {stem for stem, found in names.items() if any(f"{name}.".startswith("discreet._core.") for name in found)}
    while more := {stem for stem in names if below[stem] & reach} - reach:
        reach |= more
    yield from sorted(stem for stem in reach if stem[-1].isdigit())


def rust_modules(root):
    """Return the code of each Rust module without comments and tests, by its path of names, and its own modules."""
    found = {}
    for path in sorted(root.rglob("*.rs")):
        code = re.sub(r"//.*", "", path.read_text("utf-8"))
        code = re.sub(r"^#\[cfg\(test\)\]\nmod tests \{\n.*?^\}", "", code, flags=re.DOTALL | re.MULTILINE)
        *folders, name = path.relative_to(root).with_suffix("").parts
        found[(*folders, *({name} - {"mod", "lib"}))] = code
    return found


def rust_paths(code, module):
    """Yield the paths from the crate's root that Rust code in a module uses, also those in the braces of `use`.

    The path "*" stands for all names: a glob, or another name for the root.
    """
    unfolded = None
    while unfolded != code:
        unfolded, code = code, re.sub(r"((?:\w+::)+)\{([^{}]*)\}", unfold, code)
    if re.search(r"\bcrate(::self)?\s+as\b", code):
        yield ("*",)
    for start, names in re.findall(r"(?<!\w)(?<!::)(\w+)((?:::[\w*]+)+)", code):
        path = [start, *names.removeprefix("::").split("::")]
        place = {"crate": (), "self": module, "super": module}.get(start)
        if place is None and re.search(rf"\bmod {start};", code):
            yield (*module, *path)
        elif place is not None:
            ups = len(path) - len([*dropwhile(lambda name: name in ("crate", "self", "super"), path)])
            yield (*place[: len(place) - path[:ups].count("super")], *path[ups:])


def unfold(found):
    """Return `a::{b, c}` as `a::b, a::c`."""
    return ", ".join(f"{found[1]}{part.strip()}" for part in found[2].split(",") if part.strip())


def rust_circles(root):
    """Yield cycles of use among Rust modules, each a file. A module in a folder may not use a name of its parent."""
    modules = rust_modules(root)
    below = {module: set() for module in modules if module}
    for module in below:
        for path in rust_paths(modules[module], module):
            below[module] |= {next((path[:end] for end in range(len(path), 0, -1) if path[:end] in below), module)}
    yield from cycle({"::".join(module): {"::".join(used) for used in found} for module, found in below.items()})


def map_violations(root):
    """Yield Rust modules that use a module not below them on the map in lib.rs, or that are not on the map."""
    text = (root / "lib.rs").read_text("utf-8")
    lines = re.findall(r"^//! ([a-z_ ]*?)(?:  |$)", text.split("```text")[1].split("//! ```")[0], re.MULTILINE)
    floor = {name: number for number, line in enumerate(reversed(lines)) for name in line.split()}
    for module, code in rust_modules(root).items():
        name = ".".join(module[:1])
        if name in floor:
            found = {path[0] if path else "*" for path in rust_paths(code, module)} - {name}
            yield from (f"{name} uses {used}" for used in sorted(found) if floor.get(used, 99) >= floor[name])
        elif name:
            yield f"{name} is not on the map"


def cycle(below):
    """Yield one cycle of a graph, if there is one: the names on it."""
    try:
        tuple(TopologicalSorter({name: used - {name} for name, used in below.items()}).static_order())
    except CycleError as error:
        yield " and ".join(error.args[1])
