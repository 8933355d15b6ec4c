"""Threshold mechanisms: noise on every count; items whose noisy count exceeds the threshold are released."""
