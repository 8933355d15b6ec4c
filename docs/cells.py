"""A reader of pages: their Python is run when the site is built, and its output is shown below it.

A page is plain Markdown. Each block marked `python` is a cell. Comments on the lines before a block change this:

- `<!-- skip: next -->` shows the block and does not run it. The tests obey this comment, too. With `if(missing("x"))`
  the block runs if the library x is installed.
- `<!-- hide: next -->` shows the output, and folds the code away.
- `<!-- run: next -->` runs a block marked `sh`, and shows its output.
- `<!-- picture: next TEXT -->` is the text of the block's picture, for readers who do not see it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import sys
import tempfile
from pathlib import Path

from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from traitlets.config import Config

__all__ = ["environment", "execute", "read", "run"]

_BLOCK = re.compile(
    r"(?P<comments>(?:^<!-- (?:skip|hide|run|picture): next.*? -->\n\s*)*)"
    r"^```(?P<language>python|sh)\n(?P<source>.*?)^```$\n?",
    re.DOTALL | re.MULTILINE,
)

_SHELL = "print(__import__('subprocess').check_output({}, stderr=-2, text=True), end='')"


def read(text: str) -> NotebookNode:
    """Return a page as a notebook. A page in MyST's own format of notebooks is read as such."""
    if text.startswith("---"):
        from myst_nb.core.read import read_myst_markdown_notebook

        return read_myst_markdown_notebook(text, add_source_map=True)
    notebook, place, lines = new_notebook(), 0, []

    def add(cell: NotebookNode, start: int) -> None:
        notebook.cells.append(cell)
        lines.append(text.count("\n", 0, start))

    for block in _BLOCK.finditer(text):
        comments, source = block["comments"], block["source"]
        shell = block["language"] == "sh"
        if skipped(comments) or (shell and "<!-- run: next -->" not in comments):
            continue
        # A command stays in the text, and a cell below it runs it.
        if between := text[place : block.end() if shell else block.start()].strip():
            add(new_markdown_cell(between), place)
        tags = ["remove-input"] if shell else ["hide-input"] if "<!-- hide: next -->" in comments else []
        code = _SHELL.format(["bash", "-ec", source]) if shell else source
        alt = re.findall("<!-- picture: next (.*?) -->", comments)
        shown = {"mystnb": {"image": {"alt": alt[0]}}} if alt else {}
        add(new_code_cell(code.rstrip(), metadata={"tags": tags, **shown}), block.start())
        place = block.end()
    if rest := text[place:].strip():
        add(new_markdown_cell(rest), place)
    notebook.metadata["source_map"] = lines
    return notebook


def run(text: str) -> NotebookNode:
    """Return a page as a notebook with its outputs, after a run in an empty folder. A cell that fails is an error."""
    notebook = read(text)
    if any(cell.cell_type == "code" for cell in notebook.cells):
        execute(notebook, 60)
    return notebook


def execute(notebook: NotebookNode, timeout: int) -> None:
    """Run a notebook in an empty folder, at most `timeout` seconds for each cell, and write the outputs into its cells.

    Kernels that start at the same time can choose the same TCP port. Sockets in a folder have no such race.
    """
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as sockets:
        manager = {"transport": "ipc", "ip": f"{sockets}/kernel"} if os.name != "nt" else {}
        where = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=timeout, resources=where, config=Config(KernelManager=manager)).execute()


def skipped(comments: str) -> bool:
    """Return whether a comment skips the block here, where some libraries may be missing."""
    skip = re.search("<!-- skip: next(.*?)-->", comments, re.DOTALL)
    needed = re.findall(r"missing\(\"(\w+)\"\)", skip[1]) if skip else []
    return skip is not None and (not needed or any(importlib.util.find_spec(name) is None for name in needed))


def environment(folder: Path) -> dict[str, str]:
    """Return the environment of the kernels, whose settings are written into this folder.

    Pictures have the style of `matplotlibrc`, as SVG for the site and as PNG. The command `discreet` is on the path.
    """
    profile = folder / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    settings = ["InlineBackend.figure_formats = {'svg', 'png'}", "IPKernelApp.log_level = 'ERROR'"]
    settings += ["HistoryManager.enabled = False"]
    (profile / "ipython_kernel_config.py").write_text("".join(f"c.{line}\n" for line in settings), "utf-8")
    return {
        "IPYTHONDIR": str(folder),
        "MATPLOTLIBRC": str(Path(__file__).with_name("matplotlibrc")),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
    }
