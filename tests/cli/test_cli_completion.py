"""Shell completion: commands, options, values and names of files."""

import os
import subprocess
import sys
from unittest.mock import patch

import pytest
from command import discreet, process

pytestmark = pytest.mark.skipif(os.name == "nt", reason="click completes for Bash, Zsh and Fish")


def completions(*words, run=discreet):
    """Return what Bash offers for the last word, as pairs of type and value."""
    asked = {"COMP_WORDS": " ".join(("discreet", *words)), "COMP_CWORD": str(len(words))}
    with patch.dict(os.environ, {**asked, "_DISCREET_COMPLETE": "bash_complete"}):
        code, out, err = run()
    assert (code, err) == (0, "")
    return [tuple(line.split(",", 1)) for line in out.splitlines()]


@pytest.mark.parametrize(
    "words",
    [
        ("count", "vis"),
        ("count", "x", "-o", "vis"),
        ("select", "x", "--ledger", "vis"),
        ("count", "x", "--items", "vis"),
        ("check", "--database", "vis"),
        ("stream", "step", "s", "vis"),
        ("stream", "init", "vis"),
        ("budget", "show", "vis"),
        ("verify", "vis"),
        ("demo", "--write", "vis"),
    ],
)
def test_names_of_files_are_left_to_the_shell(words):
    assert completions(*words) == [("file", "vis")]


def test_commands_options_and_values_are_completed():
    assert completions("co", run=process) == [("plain", "count")]
    assert completions("count", "--ev") == [("plain", "--every")]
    assert [value for _, value in completions("count", "--every", "1")] == ["1h", "1d", "1w", "1mo"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell):
    environment = {**os.environ, "_DISCREET_COMPLETE": f"{shell}_source"}
    command = [sys.executable, "-m", "discreet"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
    if shell == "bash" and not done.stdout:  # click asks Bash for its version
        pytest.skip("no Bash")
    assert "_discreet_completion" in done.stdout
