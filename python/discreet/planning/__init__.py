"""Plans of mechanisms and the choice of a mechanism, before any data is read."""

from discreet.planning.plan import Plan

__all__ = ["Plan"]
