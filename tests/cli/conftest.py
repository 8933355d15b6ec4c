"""The command in an empty folder."""

import io

import pytest

from discreet.cli import main


@pytest.fixture
def discreet(tmp_path, monkeypatch, capsys):
    """Return a function that runs a command in an empty folder without a terminal."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")

    def ended(*arguments, stdin=""):
        monkeypatch.setattr("sys.stdin", io.StringIO(stdin))
        with pytest.raises(SystemExit) as exit_:
            main([str(argument) for argument in arguments])
        return exit_.value.code, *capsys.readouterr()

    return ended
