"""Guarantees, their conversion between notions of privacy, and the parameters that they are made of."""
