"""Top-k mechanisms: noise on the k_bar largest counts, or a noisy choice of their ranks."""
