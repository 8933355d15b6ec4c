"""The papers' theorems as functions of floats, one paper per module.

`tails`, `privacy_losses` and `union_noise` are not papers. They compute bounds for noise on integers from its exact
laws.
"""
