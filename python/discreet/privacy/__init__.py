"""Guarantees, sensitivities and conversions between notions of privacy."""

from discreet.privacy.guarantee import Guarantee, Sensitivity

__all__ = ["Guarantee", "Sensitivity"]
