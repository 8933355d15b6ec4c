"""The type of arguments and options that name a file, which a shell completes with names of files."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

__all__ = ["FILE"]


class _FileName(click.types.StringParamType):
    """Text that is passed on unchanged. `click.Path` would refuse globs and addresses such as hdfs:///logs."""

    name = "file"

    def shell_complete(
        self, _context: click.Context, _parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Return one item that tells the shell to complete names of files."""
        return [CompletionItem(incomplete, type="file")]


FILE = _FileName()
