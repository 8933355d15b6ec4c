"""Top-k mechanisms: noise on the k_bar largest counts, or a noisy choice of their ranks."""

from typing import TYPE_CHECKING

from discreet.names import lazy

if TYPE_CHECKING:
    from discreet.mechanisms.top_k.discover_and_peel import DiscoverAndPeel
    from discreet.mechanisms.top_k.exponential_mechanism import ExponentialMechanism
    from discreet.mechanisms.top_k.gaussian import GaussianTopK
    from discreet.mechanisms.top_k.gumbel import GumbelTopK
    from discreet.mechanisms.top_k.laplace import LaplaceTopK
else:
    __getattr__, __dir__ = lazy(
        __name__,
        {
            "mechanisms.top_k.discover_and_peel": "DiscoverAndPeel",
            "mechanisms.top_k.exponential_mechanism": "ExponentialMechanism",
            "mechanisms.top_k.gaussian": "GaussianTopK",
            "mechanisms.top_k.gumbel": "GumbelTopK",
            "mechanisms.top_k.laplace": "LaplaceTopK",
        },
    )

__all__ = ["DiscoverAndPeel", "ExponentialMechanism", "GaussianTopK", "GumbelTopK", "LaplaceTopK"]
