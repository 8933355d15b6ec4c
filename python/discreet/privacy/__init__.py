"""Guarantees, their conversion between notions of privacy, and the parameters that they are made of."""

from discreet.privacy.guarantee import Guarantee, Sensitivity

__all__ = ["Guarantee", "Sensitivity"]
