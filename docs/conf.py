"""Sphinx configuration of the documentation, which `python3 dev.py docs` builds."""

from sphinx.ext.napoleon import Config, GoogleDocstring

from discreet import __version__

project = "discreet"
release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "discreet"
html_show_copyright = False
myst_heading_anchors = 2

# Docstrings are plain text, in which single backticks mark code.
default_role = "literal"
autodoc_mock_imports = ["sklearn"]  # an optional library, whose inherited methods are not documented here
autodoc_default_options = {"members": True, "inherited-members": True, "undoc-members": False}
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 100
autodoc_class_signature = "mixed"
autodoc_member_order = "bysource"
SECTIONS = Config(napoleon_use_rtype=False)


def setup(app):
    app.connect("autodoc-process-docstring", process_docstring)


def process_docstring(app, what, _name, _found, _options, lines):
    """Escape bars and stars, which are part of formulas, and convert the Google-style sections."""
    lines[:] = [line.replace("|", "\\|").replace("*", "\\*") for line in lines]
    # Skip properties: Napoleon would read the words before a colon as the type of a property.
    if what in ("function", "method", "class"):
        lines[:] = GoogleDocstring(lines, SECTIONS, app, what).lines()
