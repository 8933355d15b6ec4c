//! The first `ChaCha20` blocks of eight streams at a time. A block is 16 words of 32 bits.
//!
//! Each stream uses one lane of the processor's vector registers. With a cipher for one key at a time, most lanes would
//! be idle.

/// The number of streams computed together.
pub(crate) const LANES: usize = 8;
/// One word of each stream.
type Row = [u32; LANES];

/// Return the first 16 words of the streams with these keys and one nonce (Bernstein 2008). The block counter is zero.
#[inline(always)]
#[allow(clippy::inline_always)] // compiled for the vector unit that the caller dispatches to
pub(crate) fn first_blocks(keys: &[[u8; 32]; LANES], nonce: u64) -> [Row; 16] {
    let mut start = [[0; LANES]; 16];
    let constants = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];
    for (row, word) in start.iter_mut().zip(constants) {
        *row = [word; LANES];
    }
    for (lane, key) in keys.iter().enumerate() {
        for (row, word) in start[4..12].iter_mut().zip(key.as_chunks().0) {
            row[lane] = u32::from_le_bytes(*word);
        }
    }
    start[14] = [nonce as u32; LANES];
    start[15] = [(nonce >> 32) as u32; LANES];
    let [mut a, mut b, mut c, mut d] = [0, 4, 8, 12].map(|first| {
        let four: [Row; 4] = std::array::from_fn(|column| start[first + column]);
        four
    });
    for _ in 0..10 {
        for column in 0..4 {
            quarter(&mut a[column], &mut b[column], &mut c[column], &mut d[column]);
        }
        quarter(&mut a[0], &mut b[1], &mut c[2], &mut d[3]);
        quarter(&mut a[1], &mut b[2], &mut c[3], &mut d[0]);
        quarter(&mut a[2], &mut b[3], &mut c[0], &mut d[1]);
        quarter(&mut a[3], &mut b[0], &mut c[1], &mut d[2]);
    }
    let mut blocks = start;
    for (row, mixed) in blocks.iter_mut().zip([a, b, c, d].as_flattened()) {
        add(row, mixed);
    }
    blocks
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn quarter(a: &mut Row, b: &mut Row, c: &mut Row, d: &mut Row) {
    add(a, b);
    xor_rotate(d, a, 16);
    add(c, d);
    xor_rotate(b, c, 12);
    add(a, b);
    xor_rotate(d, a, 8);
    add(c, d);
    xor_rotate(b, c, 7);
}

#[inline(always)]
#[allow(clippy::inline_always)]
fn add(row: &mut Row, other: &Row) {
    for lane in 0..LANES {
        row[lane] = row[lane].wrapping_add(other[lane]);
    }
}

/// XOR `other` into `row`, then rotate left.
#[inline(always)]
#[allow(clippy::inline_always)]
fn xor_rotate(row: &mut Row, other: &Row, bits: u32) {
    for lane in 0..LANES {
        row[lane] = (row[lane] ^ other[lane]).rotate_left(bits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use chacha20::ChaCha20Legacy;
    use chacha20::cipher::{KeyIvInit, StreamCipher};

    #[test]
    fn blocks_equal_the_keystream_of_the_cipher() {
        for nonce in [0, 1, 77, u64::MAX, 1 << 63 | 5] {
            let keys: [[u8; 32]; LANES] = std::array::from_fn(|lane| {
                std::array::from_fn(|byte| (lane * 31 + byte * 7) as u8 ^ nonce as u8)
            });
            let blocks = first_blocks(&keys, nonce);
            for (lane, key) in keys.iter().enumerate() {
                let mut bytes = [0; 64];
                ChaCha20Legacy::new(key.into(), &nonce.to_le_bytes().into())
                    .write_keystream(&mut bytes);
                for (row, word) in blocks.iter().zip(bytes.as_chunks().0) {
                    assert_eq!(row[lane], u32::from_le_bytes(*word));
                }
            }
        }
    }
}
