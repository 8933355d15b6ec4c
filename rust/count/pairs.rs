//! Rows: (item, user) pairs packed into integers.
//!
//! The key of an integer user is the integer, and the key of any other user is a 96-bit hash. If
//! users are integers, the key of an integer item is the integer. The key of any other item is its
//! code. A code is a number that stands for one label within the item's partition.

use bytemuck::Pod;

use crate::hash::HashKeys;

/// A row packed into one integer: the item's key above the user's key.
pub trait Pair: Copy + Eq + Send {
    /// The integer type.
    type Bits: Pod + Eq + Send + Sync;
    /// The rows of users without items (see [`crate::count::users`]).
    type User: Pair;
    /// Returns the row of a user without an item. The lower 64 bits of its key are a keyed hash.
    /// Different users have different rows. Only the user with the key zero has the row zero.
    fn user_row(user: u128, keys: &HashKeys) -> Self::User;
    /// Returns the row's integer.
    fn bits(self) -> Self::Bits;
    /// Returns the row of an integer.
    fn of_bits(bits: Self::Bits) -> Self;
    /// Returns the row of an item's key and a user's key.
    fn new(item: u64, user: u128) -> Self;
    /// Returns the item's key.
    fn item(self) -> u64;
    /// Returns the user's key.
    fn user(self) -> u128;
    /// Returns the row with another key for its item.
    #[must_use]
    fn with_item(self, item: u64) -> Self;
    /// Returns a keyed hash of the row.
    fn hash(self, keys: &HashKeys) -> u64;
    /// Appends the row's bytes.
    fn write(self, into: &mut Vec<u8>);
    /// Reads a row from its bytes.
    fn read(bytes: &[u8]) -> Self;
}

/// Defines a row type by its integer type and the number of bits of the user's key.
macro_rules! pair {
    ($(#[$doc:meta])* $name:ident, $bits:ty, $user_bits:literal, $user:ident, $user_key:path) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct $name($bits);

        impl $name {
            const USER: $bits = <$bits>::MAX >> (<$bits>::BITS - $user_bits);

            /// Shifts an item's key above the user's key; zero if the row has no room for an item.
            #[inline]
            fn above(item: u64) -> $bits {
                <$bits>::from(item).checked_shl($user_bits).unwrap_or(0)
            }
        }

        impl Pair for $name {
            type Bits = $bits;
            type User = $user;
            #[inline]
            fn user_row(user: u128, keys: &HashKeys) -> $user {
                $user::new(0, $user_key(user, keys))
            }
            fn bits(self) -> $bits {
                self.0
            }
            fn of_bits(bits: $bits) -> Self {
                Self(bits)
            }
            #[inline]
            fn new(item: u64, user: u128) -> Self {
                debug_assert!(user <= Self::USER.into(), "a row is too narrow for its user");
                let row = Self(Self::above(item) | user as $bits & Self::USER);
                debug_assert!(row.item() == item, "a row is too narrow for its item");
                row
            }
            #[inline]
            fn item(self) -> u64 {
                self.0.checked_shr($user_bits).unwrap_or(0) as u64
            }
            fn user(self) -> u128 {
                u128::from(self.0 & Self::USER)
            }
            fn with_item(self, item: u64) -> Self {
                Self(Self::above(item) | self.0 & Self::USER)
            }
            #[inline]
            fn hash(self, keys: &HashKeys) -> u64 {
                let bits = u128::from(self.0);
                keys.pair(bits as u64, (bits >> 64) as u64)
            }
            fn write(self, into: &mut Vec<u8>) {
                into.extend_from_slice(&self.0.to_le_bytes());
            }
            fn read(bytes: &[u8]) -> Self {
                let mut bits = [0; size_of::<$bits>()];
                bits.copy_from_slice(bytes);
                Self(<$bits>::from_le_bytes(bits))
            }
        }
    };
}

pair!(
    /// An item's key and a user's key of 64 bits each.
    Wide, u128, 64, Lone, number_of
);
pair!(
    /// An item's key of 32 bits and a user's key of 96 bits.
    Hashed, u128, 96, Hashed, hash_of
);
pair!(
    /// A user's number of 64 bits without an item.
    Lone, u64, 64, Lone, number_of
);

/// Returns a number that only the user with this key of 64 bits has.
#[inline]
fn number_of(user: u128, keys: &HashKeys) -> u128 {
    keys.number(user as u64).into()
}

/// Returns the hash that is the user's key.
#[inline]
fn hash_of(user: u128, _: &HashKeys) -> u128 {
    user
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts_come_back<P: Pair + std::fmt::Debug>(item: u64, user: u128) {
        let row = P::new(item, user);
        assert_eq!((row.item(), P::of_bits(row.bits())), (item, row));
        let mut bytes = Vec::new();
        row.write(&mut bytes);
        assert_eq!((bytes.len(), P::read(&bytes)), (size_of::<P>(), row));
        assert_eq!(row.with_item(item / 2), P::new(item / 2, user));
        assert_ne!(row, P::new(item, user ^ 1));
    }

    #[test]
    fn keys_bits_and_bytes_of_a_row_are_read_back() {
        parts_come_back::<Wide>(u64::MAX, u64::MAX.into());
        parts_come_back::<Hashed>(u32::MAX.into(), (1 << 96) - 1);
    }
}
