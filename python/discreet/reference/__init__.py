"""Pure-Python and numpy twins of the Rust kernels: same names, same arguments, same answers.

They are short and slow and exist for tests and benchmarks. Given `_core.Rng`, whose bits they share,
they must return the same rows and numbers as Rust; given `insecure.NumpyRng`, the same law.
"""
