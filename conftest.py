"""A collector that runs the Python examples of the README and docs as tests, each page in an empty folder."""

import os

from sybil import Sybil
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser


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


pytest_collect_file = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/*.md", "docs/papers/*.md", "docs/understand/*.md"],
    excludes=["docs/index.md", "docs/quick-start.md"],  # notebooks (tests/test_notebooks.py)
    setup=enter,
    teardown=leave,
).pytest()
