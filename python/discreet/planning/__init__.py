"""Before any data: which mechanism a verb takes, and what a mechanism will do."""

from discreet.planning.plan import Plan

__all__ = ["Plan"]
