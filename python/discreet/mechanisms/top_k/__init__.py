"""Top-k mechanisms: noise on the k_bar largest counts, or a noisy choice of their ranks."""

from discreet.mechanisms.top_k.discover_and_peel import DiscoverAndPeel
from discreet.mechanisms.top_k.gaussian import GaussianTopK
from discreet.mechanisms.top_k.gumbel import GumbelTopK
from discreet.mechanisms.top_k.laplace import LaplaceTopK
from discreet.mechanisms.top_k.permute_and_flip import PermuteAndFlip

__all__ = ["DiscoverAndPeel", "GaussianTopK", "GumbelTopK", "LaplaceTopK", "PermuteAndFlip"]
