"""A small histogram and a fast mechanism for the tests of budgets."""

from discreet import GumbelTopK, Histogram


def histogram(items=20):
    counts = [10_000 - 300 * n for n in range(items)]
    return Histogram.from_counts([f"item-{n:02d}" for n in range(items)], counts, l0=None, linf=1, complete=True)


def top(rho=0.1, delta=1e-7, k=3):
    return GumbelTopK.from_rho(k=k, rho=rho, delta=delta, k_bar=10)
