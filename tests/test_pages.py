"""Pages as notebooks: the code of the tutorials runs in a kernel, and its pictures and tables are there."""

import importlib.util
import os
from pathlib import Path

import pytest

for needed in ("nbclient", "ipykernel", "matplotlib", "sklearn", "polars"):
    pytest.importorskip(needed)

DOCS = Path(__file__).resolve().parent.parent / "docs"
TUTORIALS = sorted((DOCS / "tutorials").glob("[0-9]*.md"))
PAGES = [DOCS / "index.md", DOCS / "quick-start.md", *TUTORIALS]
BOTH = {"image/png", "text/html"}
SHOWN = {"index": {"image/png"}, "quick-start": {"text/html"}}

spec = importlib.util.spec_from_file_location("cells", DOCS / "cells.py")
cells = importlib.util.module_from_spec(spec)
spec.loader.exec_module(cells)


ENTER = """
%reset -f
import discreet.demo, gc, os, tempfile
_folder = tempfile.TemporaryDirectory()
os.chdir(_folder.name)
discreet.demo.ROWS = 100_000
gc.freeze()
del discreet, gc, os, tempfile
"""


@pytest.mark.skipif(os.name == "nt", reason="the pages have commands for a POSIX shell")
def test_pages_run_in_a_kernel_and_show_pictures_and_tables(tmp_path, monkeypatch):
    # One kernel, whose names are forgotten before each page: a kernel and its imports take two seconds. The site shows
    # a log of 400,000 rows, and pictures also as SVG.
    for name, value in cells.environment(tmp_path).items():
        monkeypatch.setenv(name, value)
    with (tmp_path / "profile_default" / "ipython_kernel_config.py").open("a") as settings:
        settings.write("c.InlineBackend.figure_formats = {'png'}\n")
    pages = {page.stem: cells.read(page.read_text("utf-8")).cells for page in PAGES}
    whole = [[cells.new_code_cell(ENTER), *found] for found in pages.values()]
    cells.execute(cells.new_notebook(cells=[cell for page in whole for cell in page]), 60)
    for page, found in pages.items():
        outputs = [output for cell in found if cell.cell_type == "code" for output in cell.outputs]
        shown = {kind for output in outputs for kind in output.get("data", {})}
        assert SHOWN.get(page, BOTH) - shown == set(), page
        assert [output.text for output in outputs if output.get("name") == "stderr"] == [], page


PAGE = """# Title

Text.

```python
a = 1
```

<!-- skip: next -->

```python
b = 2
```

<!-- skip: next if(missing("nothing_here"), reason="x") -->
```python
d = 4
```

<!-- skip: next if(missing("pytest"), reason="x") -->
<!-- hide: next -->
<!-- picture: next A line that rises -->
```python
c = 3
```

```sh
no
```

<!-- run: next -->
```sh
yes
```
End.
"""


def test_a_page_becomes_cells_by_its_comments():
    notebook = cells.read(PAGE)
    code = [(cell.source, cell.metadata.tags) for cell in notebook.cells if cell.cell_type == "code"]
    assert code == [
        ("a = 1", []),
        ("c = 3", ["hide-input"]),
        (cells._SHELL.format(["bash", "-ec", "yes\n"]), ["remove-input"]),
    ]
    shown = [cell.metadata.mystnb.image.alt for cell in notebook.cells if "mystnb" in cell.metadata]
    assert shown == ["A line that rises"]
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert all(part in text for part in ("# Title", "b = 2", "d = 4", "no\n", "yes", "End."))
    assert "a = 1" not in text
    assert "c = 3" not in text
    lines = PAGE.splitlines()
    for cell, line in zip(notebook.cells, notebook.metadata["source_map"], strict=True):
        assert cell.source.splitlines()[0] in lines[line:] or cell.metadata.tags == ["remove-input"]


def test_a_cell_that_fails_is_an_error():
    with pytest.raises(Exception, match="ZeroDivisionError"):
        cells.run("# Title\n\n```python\n1 / 0\n```\n")
