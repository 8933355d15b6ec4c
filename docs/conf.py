"""Sphinx configuration of the documentation, which `python3 dev.py docs` builds."""

import logging
import os
import re
import sys
from pathlib import Path

from docutils import nodes
from sphinx.errors import ExtensionError
from sphinx.ext.napoleon import Config, GoogleDocstring

from discreet import __version__
from discreet.cli import command, commands

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

import built  # noqa: E402 - the folder of this file is not on the path before
import cells  # noqa: E402

project = "discreet"
release = __version__
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_click",
    "sphinx_design",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
html_theme = "furo"
html_title = "discreet"
html_show_copyright = False
html_show_sphinx = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = ["versions.js"]
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist"]

# Each page with Python is a notebook, which runs in an empty folder in a kernel of its own.
nb_custom_formats = {".md": ["cells.run", {}]}
nb_execution_mode = "off"  # `cells.run` returns the outputs
nb_merge_streams = True
os.environ.update(cells.environment(HERE / "_build" / "ipython"))

# Docstrings are plain text, in which single backticks mark code. Code that is a public name becomes a link.
default_role = "py:obj"
smartquotes = False  # two hyphens begin an option
autodoc_default_options = {"members": True, "inherited-members": True, "undoc-members": False}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
SECTIONS = Config(napoleon_use_rtype=False)

# A signature may name types that have no page: types of other libraries, and types inside the package.
nitpicky = True
nitpick_ignore_regex = [
    ("py:class", r"(?!discreet\.).*"),
    ("py:class", r"discreet\.(_core|certificate|errors\.Amount)\b.*"),
    ("py:class", r"discreet(\.\w+){3,}"),
    ("py:exc", "NotFittedError"),
    ("py:obj", r"[\s\S]*"),  # other code in docstrings
]

# The command imports a subcommand when it runs. The page of the command line needs all of them.
for name in commands.SUMMARIES:
    command.cli.add_command(getattr(commands, name.replace("-", "_")), name)

logging.getLogger("traitlets").setLevel("WARNING")  # there is a message for each notebook


def setup(app):
    app.connect("source-read", run_commands)
    app.connect("doctree-read", set_dashes)
    app.connect("autodoc-process-docstring", process_docstring)
    app.connect("build-finished", require_no_markup)
    for part in ("description", "usage", "options", "arguments", "envvars", "epilog"):
        app.connect(f"sphinx-click-process-{part}", process_help)


def run_commands(_app, name, source):
    """Run the commands of the how-to pages, as their tests do."""
    if name.startswith("how-to/"):
        source[0] = re.sub("^```sh$", "<!-- run: next -->\n```sh", source[0], flags=re.MULTILINE)


def require_no_markup(app, error):
    """Fail the build if a page shows markup: a placeholder, or a link of Markdown."""
    if error is None and app.builder.format == "html":
        pages = sorted(Path(app.outdir).rglob("*.html"))
        if found := [f"{page}: {text}" for page in pages for text in built.markup(page.read_text("utf-8"))]:
            raise ExtensionError("pages show markup:\n" + "\n".join(found))


def set_dashes(_app, page):
    """Write a dash between a parameter and its description."""
    for text in list(page.findall(nodes.Text)):
        if text.astext() == " -- ":
            text.parent.replace(text, nodes.Text(" \N{EN DASH} "))


def process_docstring(app, what, _name, _found, _options, lines):
    """Escape bars and stars, which are part of formulas, and convert the Google-style sections."""
    example = False  # an example and its output, up to an empty line
    for number, line in enumerate(lines):
        example = line.strip() != "" and (example or line.lstrip().startswith(">>>"))
        if not example:
            escaped = line.replace("|", "\\|").replace("*", "\\*")
            lines[number] = re.sub(r"docs/([\w/-]+)\.md", r":doc:`/\1`", escaped)  # a link to the page
    # Skip properties: Napoleon would read the words before a colon as the type of a property.
    if what in ("function", "method", "class", "exception"):
        lines[:] = GoogleDocstring(lines, SECTIONS, app, what).lines()


def process_help(_app, _context, lines):
    """Escape stars, which are part of globs, and show preformatted lines as they are."""
    shown, literal = [], False
    for line in lines:
        if line.startswith("| "):  # click's mark of preformatted lines
            shown += [*([] if literal else ["::", ""]), "    " + line[2:]]
        else:
            shown.append(re.sub(r"(?<!\*)\*(?!\*)", r"\\*", line))
        literal = line.startswith("| ")
    lines[:] = shown
