"""Mechanisms that release many counts, bound the items of a user, or refine released counts."""
