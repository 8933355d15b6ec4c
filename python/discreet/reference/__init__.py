"""Reference implementations of the Rust kernels in Python and numpy: same names, same arguments, same answers.

They are short and slow, and exist for tests and benchmarks. With `_core.Rng`, whose random bits they share, they must
return the same rows and numbers as Rust.
"""
