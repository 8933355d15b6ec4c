"""A collector that runs the examples of the README and docs as tests, each page in an empty folder.

The how-to pages also run their shell commands, in the order of the page.
"""

import os
import subprocess
import sys

from sybil import Sybil
from sybil.parsers.markdown import CodeBlockParser, PythonCodeBlockParser, SkipParser

# The tests start about 500 processes. Without this cache, each of them would compile the package again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.pycache_prefix = os.environ.setdefault("PYTHONPYCACHEPREFIX", os.path.join(sys.prefix, "compiled"))


def enter(namespace):
    import importlib.util
    import tempfile

    namespace["missing"] = lambda name: importlib.util.find_spec(name) is None
    namespace["_folder"] = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)  # Windows keeps open files
    namespace["_before"] = os.getcwd()
    os.chdir(namespace["_folder"].name)


def leave(namespace):
    os.chdir(namespace["_before"])
    namespace["_folder"].cleanup()


def run_shell(example):
    """Run shell commands with `discreet` as the command of this checkout; the first error ends them."""
    code = f'set -e\ndiscreet() {{ "{sys.executable}" -m discreet "$@"; }}\n{example.parsed}'
    path = os.pathsep.join(os.path.abspath(folder or ".") for folder in sys.path)
    done = subprocess.run(["bash", "-c", code], env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True)
    assert done.returncode == 0, f"{example.parsed}\n{done.stdout}\n{done.stderr}"


SHELL = [PythonCodeBlockParser(), CodeBlockParser(language="sh", evaluator=run_shell), SkipParser()]
pages = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/papers/*.md", "docs/understand/*.md"],
    excludes=["docs/index.md", "docs/quick-start.md"],  # notebooks (tests/test_pages.py)
    setup=enter,
    teardown=leave,
)
how_to = Sybil(parsers=SHELL, patterns=["docs/how-to/*.md"], setup=enter, teardown=leave)
pytest_collect_file = (pages if os.name == "nt" else pages + how_to).pytest()  # Windows has no bash
