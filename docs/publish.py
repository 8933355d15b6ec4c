"""Put a built site into the folder of its version: `python docs/publish.py HTML PAGES VERSION`.

PAGES has one folder for each version, a list of them (`versions.json`) for the switch in the sidebar, and a page that
leads to the newest release, or to `main` before the first one.
"""

import json
import shutil
import sys
from pathlib import Path

HOME = """<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={0}/">
<a href="{0}/">discreet</a>
"""


def numbers(version):
    """Return the numbers of a tag such as v0.1.0, or nothing for a branch."""
    parts = version.removeprefix("v").split(".")
    return [int(part) for part in parts] if all(part.isdecimal() for part in parts) else []


def publish(html, pages, version):
    """Replace the folder of this version, the list of versions and the home page."""
    if version != "main" and not numbers(version):
        raise SystemExit(f"{version} is neither main nor the tag of a version")
    shutil.rmtree(pages / version, ignore_errors=True)
    shutil.copytree(html, pages / version)
    versions = sorted((path.parent.name for path in pages.glob("*/index.html")), key=numbers, reverse=True)
    (pages / "versions.json").write_text(json.dumps(versions) + "\n", "utf-8")
    (pages / "index.html").write_text(HOME.format(versions[0]), "utf-8")
    (pages / ".nojekyll").touch()  # or folders such as _static would be left out


if __name__ == "__main__":
    publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
