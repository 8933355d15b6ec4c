"""The work of commands, imported when a command runs: the help of a command needs only its options."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.cli.publishing import publish as publish
else:
    __getattr__, __dir__, __all__ = lazy(__name__, {"cli.publishing": "publish"})

OF = {"count": "publish", "select": "publish", "sum": "publish", "aggregate": "publish", "top-k": "publish"}
"""The work of a command by the command's name. The modules of other commands import their work themselves."""
