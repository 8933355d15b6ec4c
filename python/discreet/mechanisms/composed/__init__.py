"""Mechanisms that are lists of steps, by the names that papers and pages give them."""
