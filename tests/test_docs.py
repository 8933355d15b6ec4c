"""What the README and the docs say: their commands run, and the reference names what is public."""

import re
import shlex
from pathlib import Path

import pytest

import discreet as dp
from discreet.cli import main

ROOT = Path(__file__).resolve().parent.parent
CLUSTER = "--engine spark"


def commands(page):
    """The commands of this library in a page, in order, but for those that need a cluster."""
    for block in re.findall(r"```sh\n(.*?)```", (ROOT / page).read_text("utf-8"), re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            if line.startswith("discreet ") and CLUSTER not in line:
                yield shlex.split(line, comments=True)[1:]


@pytest.mark.parametrize("page", ["README.md", "docs/streams.md"])
def test_documented_commands_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for month, name in ((1, "january"), (2, "february")):
        rows = "".join(f"{n},home,2026-{month:02d}-{n % 28 + 1:02d}T10:00\n" for n in range(2800))
        Path(f"{name}.csv").write_text("visit,page,when\n" + rows)
    found = list(commands(page))
    assert len(found) >= 4
    for command in found:
        # Nobody is at the terminal to say that a column of text holds times.
        yes = ["--yes"] if "--time" in command else []
        with pytest.raises(SystemExit) as ended:
            main([*command, *yes])
        assert ended.value.code == 0, (command, capsys.readouterr().err)


def test_every_public_name_is_in_the_reference():
    listed = re.findall(r"^\.\. auto\w+:: (\w+)$", (ROOT / "docs" / "reference.md").read_text("utf-8"), re.MULTILINE)
    assert sorted(listed) == [name for name in dp.__all__ if name != "__version__"]
