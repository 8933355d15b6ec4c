"""The licence texts of the crates that a wheel contains: `python3 .github/third_party.py` writes them anew.

The extension links its crates statically, and their licences ask for their texts. With `--check` the script fails if
the committed file is not what it would write. It needs `cargo fetch --locked` first, for the crates of all machines.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "THIRD-PARTY-LICENSES.txt"
HEAD = """The binary wheels of discreet contain these crates. Each text below is that of the crates above it.
If a crate offers several licences and MIT is one of them, discreet uses it under MIT.
"""
RULE = "=" * 80
MIT = """MIT License

Copyright (c) {authors}

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""
"""The text for a crate under MIT that has no file of its own."""


def targets() -> list[str]:
    """Return the machines that wheels are built for."""
    workflow = (ROOT / ".github" / "workflows" / "wheels.yml").read_text("utf-8")
    return re.findall(r"target: ([\w-]+)[ ,}]", workflow)


def linked(target: str) -> list[dict[str, object]]:
    """Return the crates that are linked into the extension for a machine: no build scripts, no macros, no tests."""
    command = ["cargo", "metadata", "--locked", "--offline", "--format-version", "1", "--features", "python"]
    done = subprocess.run([*command, "--filter-platform", target], cwd=ROOT, check=True, capture_output=True, text=True)
    found = json.loads(done.stdout)
    crates = {crate["id"]: crate for crate in found["packages"]}
    needs = {node["id"]: node["deps"] for node in found["resolve"]["nodes"]}
    seen, left = set(), [found["resolve"]["root"]]
    while left:
        one = left.pop()
        if one in seen or any("proc-macro" in part["kind"] for part in crates[one]["targets"]):
            continue
        seen.add(one)
        left += [other["pkg"] for other in needs[one] if any(kind["kind"] is None for kind in other["dep_kinds"])]
    return [crates[one] for one in seen - {found["resolve"]["root"]}]


def texts(crate: dict[str, object]) -> list[str]:
    """Return the licence texts of a crate. A choice of licences that has MIT is made for MIT."""
    folder = Path(str(crate["manifest_path"])).parent
    files = sorted(path for path in folder.iterdir() if re.match("(?i)licen[cs]e|copying|notice", path.name))
    mine = [path for path in files if "mit" in path.name.lower()]
    if mine and re.search(r" OR |/", str(crate["license"])):
        files = [*mine, *(path for path in files if re.search("(?i)notice|unicode", path.name))]
    if not files and "MIT" in str(crate["license"]):
        authors = ", ".join(crate["authors"]) or f"the authors of {crate['name']}"
        return [MIT.format(authors=authors)]
    if not files:
        raise SystemExit(f"the crate {crate['name']} has no licence text")
    return [path.read_text("utf-8") for path in files]


def content() -> str:
    """Return the file: each text once, below the crates that have it."""
    crates = {f"{crate['name']} {crate['version']}": crate for target in targets() for crate in linked(target)}
    std = MIT.format(authors="The Rust Project Contributors").strip("\n")
    by_text = {std: ["the standard library of Rust (MIT OR Apache-2.0)"]}
    for name, crate in sorted(crates.items()):
        for text in texts(crate):
            plain = "\n".join(line.rstrip() for line in text.strip("\n").splitlines())
            by_text.setdefault(plain, []).append(f"{name} ({crate['license']})")
    parts = ("\n".join([RULE, *names, RULE, "", text, ""]) for text, names in by_text.items())
    return "\n".join([HEAD, *parts])


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        if content() != FILE.read_text("utf-8"):
            raise SystemExit("THIRD-PARTY-LICENSES.txt is not up to date: run python3 .github/third_party.py")
    else:
        FILE.write_text(content(), "utf-8")
