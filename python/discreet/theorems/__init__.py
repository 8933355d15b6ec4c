"""The papers' theorems as functions: floats in, floats out, a paper a module.

Beside them `tails`, `privacy_losses` and `union_noise`: what follows for noise on integers, from its exact laws.
"""
