"""Every mechanism but Private Count Release, which has a file of its own, keeps the contract."""

import dataclasses
from functools import cache

from contract import MechanismContract
from discreet import (
    GaussianThreshold,
    GaussianTopK,
    GumbelTopK,
    LaplaceThreshold,
    LaplaceTopK,
    OptimalSelection,
    TruncatedGeometric,
)
from discreet.mechanisms import PermuteAndFlip


class TestLaplaceThreshold(MechanismContract):
    def mechanism(self):
        return LaplaceThreshold.from_rho(rho=0.1, delta=1e-6, l0=3)


class TestGaussianThreshold(MechanismContract):
    def mechanism(self):
        return GaussianThreshold.from_rho(rho=0.1, delta=1e-6, l0=3, linf=2)


@cache
def by_epsilon():
    return GaussianThreshold.from_epsilon(epsilon=1.0, delta=1e-6, l0=2)


class TestGaussianThresholdByEpsilon(MechanismContract):
    def mechanism(self):
        return dataclasses.replace(by_epsilon())


class TestLaplaceTopK(MechanismContract):
    def mechanism(self):
        return LaplaceTopK.from_epsilon(epsilon=1.0, delta=1e-6, l0=3, k_bar=5)


class TestGaussianTopK(MechanismContract):
    def mechanism(self):
        return GaussianTopK.from_rho(rho=0.1, delta=1e-6, l0=3, k_bar=5)


class TestGumbelTopK(MechanismContract):
    counted = False

    def mechanism(self):
        return GumbelTopK.from_rho(k=4, rho=0.5, delta=1e-6, k_bar=8)


class TestPermuteAndFlip(MechanismContract):
    counted = False

    def mechanism(self):
        return PermuteAndFlip.from_epsilon(epsilon=1.0, delta=1e-6, k_bar=8)


class TestTruncatedGeometric(MechanismContract):
    def mechanism(self):
        return TruncatedGeometric(epsilon=0.5, delta=1e-6, l0=2)


class TestOptimalSelection(MechanismContract):
    counted = False

    def mechanism(self):
        return OptimalSelection(epsilon=1.0, delta=1e-6, l0=2)
