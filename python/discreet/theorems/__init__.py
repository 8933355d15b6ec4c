"""The papers' theorems as functions: floats in, floats out, a paper a module."""
