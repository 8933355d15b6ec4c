"""Hash flooding: strings that collide under well-known unkeyed hashes take at most twice as long as random strings.

A block is a part of a string that a hash reads in one step; a word is 8 bytes of a block. Each of these hashes is a
chain of invertible steps. So for any first half of a block there is a second half that leads back to the previous
state. All strings of the same number of such blocks have the same hash.
"""

import itertools
import struct
import time
from statistics import median

import numpy as np
import pytest

from discreet import _core

U64 = (1 << 64) - 1
WORDS = {"fx": 2, "murmur3": 4, "xxhash": 8}
"""Words of a block; the first half can be chosen freely."""


def rotated(x, bits):
    """Rotate to the left, for Python integers or arrays of uint64."""
    if isinstance(x, np.ndarray):
        return x << np.uint64(bits) | x >> np.uint64(64 - bits)
    return (x << bits | x >> 64 - bits) & U64


def inverse(factor):
    return pow(factor, -1, 1 << 64)


def word(x):
    return np.uint64(x & U64)


# --- the three hashes, and the inverse that computes the second half of a block --------------------------

FX = 0x517CC1B727220A95


def fx(text):
    """Return the FxHash (Firefox, rustc-hash 1) of a string of whole words and its closing 0xff."""
    state = 0
    for (cell,) in struct.iter_unpack("<Q", text):
        state = ((rotated(state, 5) ^ cell) * FX) & U64
    return ((rotated(state, 5) ^ 0xFF) * FX) & U64


def fx_back(first):
    """Return, for each first word, the second word after which the state is zero again."""
    return [rotated(first[0] * word(FX), 5)]


C1, C2 = 0x87C37B91114253D5, 0x4CF5AD432745937F


def mixed(x):
    """Return the final mix of MurmurHash3."""
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):
        x = (x ^ x >> 33) * factor & U64
    return x ^ x >> 33


def murmur3(text):
    """Return MurmurHash3 x64 128 with seed 0 of whole blocks of 16 bytes."""
    h1 = h2 = 0
    for k1, k2 in struct.iter_unpack("<QQ", text):
        h1 ^= rotated(k1 * C1 & U64, 31) * C2 & U64
        h1 = ((rotated(h1, 27) + h2) * 5 + 0x52DCE729) & U64
        h2 ^= rotated(k2 * C2 & U64, 33) * C1 & U64
        h2 = ((rotated(h2, 31) + h1) * 5 + 0x38495AB5) & U64
    h1, h2 = h1 ^ len(text), h2 ^ len(text)
    h1 = (h1 + h2) & U64
    h2 = (h2 + h1) & U64
    h1, h2 = mixed(h1), mixed(h2)
    h1 = (h1 + h2) & U64
    return h1, (h2 + h1) & U64


def murmur3_back(first):
    """Return, for each first block, the second block after which both states are zero again."""
    h1 = rotated(rotated(first[0] * word(C1), 31) * word(C2), 27) * word(5) + word(0x52DCE729)
    h2 = rotated(first[1] * word(C2), 33) * word(C1)
    h2 = (rotated(h2, 31) + h1) * word(5) + word(0x38495AB5)
    # Before the multiplication by five, the value that must end as zero is the same for all blocks.
    before = rotated(word(-0x52DCE729 * inverse(5)) - h2, 64 - 27)
    k1 = rotated((before ^ h1) * word(inverse(C2)), 64 - 31) * word(inverse(C1))
    before = rotated(np.broadcast_to(word(-0x38495AB5 * inverse(5)), h2.shape).copy(), 64 - 31)
    k2 = rotated((before ^ h2) * word(inverse(C1)), 64 - 33) * word(inverse(C2))
    return [k1, k2]


P1, P2, P3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
P4, P5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
LANES = [(P1 + P2) & U64, P2, 0, -P1 & U64]


def xx_round(lane, cell):
    return rotated((lane + cell * P2) & U64, 31) * P1 & U64


def xxhash(text):
    """Return xxHash64 with seed 0 of whole stripes of 32 bytes."""
    lanes = list(LANES)
    for cells in struct.iter_unpack("<QQQQ", text):
        lanes = [xx_round(lane, cell) for lane, cell in zip(lanes, cells, strict=True)]
    state = sum(rotated(lane, bits) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & U64
    for lane in lanes:
        state = ((state ^ xx_round(0, lane)) * P1 + P4) & U64
    state = (state + len(text) if text else P5) & U64
    state = (state ^ state >> 33) * P2 & U64
    state = (state ^ state >> 29) * P3 & U64
    return state ^ state >> 32


def xxhash_back(first):
    """Return, for each first stripe, the second stripe after which every lane is back at its start."""
    backs = []
    for lane, cells in zip(LANES, first, strict=True):
        now = rotated(word(lane) + cells * word(P2), 31) * word(P1)
        before = rotated(lane * inverse(P1) & U64, 64 - 31)
        backs.append((word(before) - now) * word(inverse(P2)))
    return backs


HASHES = {"fx": (fx, fx_back), "murmur3": (murmur3, murmur3_back), "xxhash": (xxhash, xxhash_back)}


# --- strings ------------------------------------------------------------------------------------------------


def printable(rng, shape):
    """Return words of eight letters."""
    return rng.integers(ord("a"), ord("z") + 1, (*shape, 8), np.uint8).view(np.uint64)[..., 0]


def is_text(words):
    """Return which words are ASCII."""
    return words & word(0x8080808080808080) == 0


def blocks(name, wanted, rng):
    """Return `wanted` ASCII blocks after which the hash state is back at its start."""
    found, half = [], WORDS[name] // 2
    columns = [[] for _ in range(half)]
    while len(found) < wanted:
        first = [printable(rng, (1 << 16,)) for _ in range(half)]
        second = HASHES[name][1](first)
        if name == "xxhash":  # lanes are independent of each other
            for column, one, two in zip(columns, first, second, strict=True):
                column += [(a, b) for a, b in zip(one[is_text(two)], two[is_text(two)], strict=True)]
            rows = zip(*columns, strict=False)
            found = [np.array([[a for a, _ in row], [b for _, b in row]]).tobytes() for row in rows]
        else:
            good = np.all([is_text(part) for part in second], axis=0)
            found += [np.array(row).tobytes() for row in np.array([*first, *second]).T[good]]
    return found[:wanted]


def colliding(name, count, rng):
    """Return `count` distinct strings of one length that all have the same hash."""
    parts = blocks(name, 8, rng)
    stages = 1
    while 8**stages < count:
        stages += 1
    return [b"".join(row).decode() for row in itertools.islice(itertools.product(parts, repeat=stages), count)]


def alike(texts, rng):
    """Return random strings of the same number and lengths as the given strings."""
    raw = rng.integers(ord("a"), ord("z") + 1, (len(texts), len(texts[0])), np.uint8)
    return [bytes(row).decode() for row in raw]


def test_the_hashes_match_their_test_vectors():
    text = bytes(range(64))
    assert (xxhash(b""), xxhash(text)) == (0xEF46DB3751D8E999, 0xF7C67301DB6713F0)
    assert (murmur3(b""), murmur3(text)) == ((0, 0), (0xFFD5522D8D812301, 0xA22238EB56338EA1))
    assert fx(b"") == 0xFF * FX & U64


@pytest.mark.parametrize("name", HASHES)
def test_strings_collide_and_random_ones_do_not(name):
    rng = np.random.default_rng(1)
    texts = colliding(name, 3000, rng)
    assert len(set(texts)) == 3000
    assert len({HASHES[name][0](text.encode()) for text in texts}) == 1
    assert len({HASHES[name][0](text.encode()) for text in alike(texts, rng)}) == 3000


# --- places and time ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", HASHES)
def test_colliding_strings_are_apart_and_in_as_many_places(name):
    rng = np.random.default_rng(4)
    texts = colliding(name, 3000, rng)
    turns = {text: turn for turn, text in enumerate(texts)}

    def found(user, item):
        stream = _core.arrow_stream([("user", user, "string"), ("item", item, "string")])
        labels, counts = _core.count_distinct(stream, "user", "item", threads=1)[:2]
        return [turns[item] for item in labels.to_list()], counts.tolist()

    orders = [found(texts, texts)[0] for _ in range(2)]
    for order in orders:
        # Items are in the order of their places among 1024, and the items of one place in the order of rows.
        assert sorted(order) == [*range(3000)]
        assert np.count_nonzero(np.diff(order) < 0) > 600
    assert orders[0] != orders[1]  # because each call has its own keys
    assert found(texts, [texts[0]] * 3000) == ([0], [3000])
    stream = _core.arrow_stream([("user", texts, "string"), ("item", texts, "string")])
    assert len(_core.Lists.read(stream, "user", "item")[1].sizes()) == 3000


def counted(stream):
    return _core.count_distinct(stream, "user", "item", threads=1)


def listed(stream):
    return _core.Lists.read(stream, "user", "item")


def ratio(work, columns, rounds):
    """Return the CPU time for the first columns over that for the second: medians of interleaved runs."""
    runs = []
    for _ in range(rounds):
        for given in columns:
            stream = _core.arrow_stream([(name, texts, "string") for name, texts in given.items()])
            started = time.process_time()
            work(stream)
            runs.append(time.process_time() - started)
    return median(runs[::2]) / median(runs[1::2])


@pytest.mark.statistical  # because the times of a busy machine vary
@pytest.mark.parametrize(("distinct", "rows", "rounds"), [(10_000, 15_000, 3), (100_000, 300_000, 5)])
@pytest.mark.parametrize("work", [counted, listed])
@pytest.mark.parametrize("name", HASHES)
def test_colliding_strings_take_at_most_twice_as_long(name, work, distinct, rows, rounds):
    rng = np.random.default_rng(2)
    texts = colliding(name, distinct, rng)
    others = alike(texts, rng)
    drawn = {column: rng.integers(0, distinct, rows) for column in ("user", "item")}
    good = {column: [others[place] for place in drawn[column]] for column in drawn}
    built = {column: [texts[place] for place in drawn[column]] for column in drawn}
    for flooded in (("user",), ("item",), ("user", "item")):
        bad = {**good, **{column: built[column] for column in flooded}}
        # A busy machine may disturb one attempt, but rarely all three.
        assert any(ratio(work, (bad, good), rounds) <= 2 for _ in range(3)), (name, flooded)


def test_an_unkeyed_hash_puts_colliding_strings_in_one_place():
    rng = np.random.default_rng(3)
    texts = colliding("fx", 12_000, rng)
    places = [len({fx(text.encode()) for text in given}) for given in (texts, alike(texts, rng))]
    assert places[0] * 100 < places[1]
