"""The steps of a release: each has a share of rho, reads before the charge, and runs after it."""
