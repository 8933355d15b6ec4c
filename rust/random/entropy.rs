//! Random numbers of 64 bits from the operating system.

use ahash::RandomState;

use crate::error::{Error, Result};

/// Return `N` random numbers of 64 bits.
///
/// # Errors
/// [`Error::Entropy`] if the operating system gives no randomness.
pub(crate) fn words<const N: usize>() -> Result<[u64; N]> {
    let mut words = [0; N];
    for word in &mut words {
        *word = getrandom::u64().map_err(|_| Error::Entropy)?;
    }
    Ok(words)
}

/// Return a hash function with a fresh random key, so that nobody can choose values that collide.
///
/// # Errors
/// [`Error::Entropy`] if the operating system gives no randomness.
pub(crate) fn keyed_hash() -> Result<RandomState> {
    let [a, b, c, d] = words()?;
    Ok(RandomState::with_seeds(a, b, c, d))
}
