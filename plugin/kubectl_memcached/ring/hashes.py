"""The hashes of keys and server names that client libraries use. All return unsigned integers.

Each is written from the description of its algorithm, and tested with values of the real library.
"""

from functools import lru_cache
from struct import unpack_from
from typing import Final, NamedTuple

_M32: Final = 2**32 - 1
_M64: Final = 2**64 - 1
_MURMUR: Final = (0xCC9E2D51, 0x1B873593, 0xE6546B64, 0x85EBCA6B, 0xC2B2AE35)
"""The multipliers of MurmurHash3_x86_32: two for blocks, one for the state, two for the finalization."""
_P64: Final = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
"""The primes of XXH32 and XXH64, from the specification of xxHash."""
_RRMXMX: Final = 0x9FB21C651E98DF25
_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3"
)
"""The first 136 bytes of the default secret of XXH3, from the specification of xxHash."""
MAX_XXH3: Final = 240
"""Bytes of the longest input of `xxh3`. Longer ones have another algorithm: only keys of 241 to 250 bytes need it."""
_KEPT: Final = 2**16
"""Hashes that are kept: a comparison tries lists of the same servers and keys hundreds of times."""


@lru_cache(_KEPT)
def one_at_a_time(data: bytes) -> int:
    """Jenkins' one-at-a-time, 32 bits, with signed bytes as in libhashkit: the default hash of libmemcached."""
    value = 0
    for byte in data:
        value = value + (byte if byte < 128 else byte - 256) & _M32
        value = value + (value << 10) & _M32
        value ^= value >> 6
    value = value + (value << 3) & _M32
    value ^= value >> 11
    return value + (value << 15) & _M32


def java(text: str) -> int:
    """Java's `String.hashCode` over UTF-16, 32 bits."""
    value = 0
    units = text.encode("utf-16-le")
    for low, high in zip(units[::2], units[1::2], strict=True):
        value = 31 * value + (high << 8 | low) & _M32
    return value


@lru_cache(_KEPT)
def murmur3(data: bytes, prefix: "MurmurPrefix | None" = None) -> int:
    """MurmurHash3_x86_32 with the seed 0. `prefix`: that of `data`, already hashed."""
    state, done = (prefix.state, prefix.length) if prefix else (0, 0)
    blocks = len(data) & ~3
    state = _murmur_blocks(state, data, done)
    if tail := data[blocks:]:
        block = int.from_bytes(tail, "little") * _MURMUR[0] & _M32
        state ^= ((block << 15 | block >> 17) & _M32) * _MURMUR[1] & _M32
    state ^= len(data)
    state = (state ^ state >> 16) * _MURMUR[3] & _M32
    state = (state ^ state >> 13) * _MURMUR[4] & _M32
    return state ^ state >> 16


class MurmurPrefix(NamedTuple):
    """The state of `murmur3` after the whole blocks of a prefix: the name of a server is hashed once for all keys."""

    length: int
    state: int

    @classmethod
    def of(cls, data: bytes) -> "MurmurPrefix":
        """The state after a prefix."""
        return cls(len(data) & ~3, _murmur_blocks(0, data, 0))


def _murmur_blocks(state: int, data: bytes, start: int) -> int:
    for block in unpack_from(f"<{(len(data) - start) // 4}I", data, start):
        mixed = block * _MURMUR[0] & _M32
        state ^= ((mixed << 15 | mixed >> 17) & _M32) * _MURMUR[1] & _M32
        state = ((state << 13 | state >> 19) & _M32) * 5 + _MURMUR[2] & _M32
    return state


def _rotated(value: int, bits: int, width: int) -> int:
    return (value << bits | value >> width - bits) & 2**width - 1


def xxh64(data: bytes) -> int:
    """XXH64 with the seed 0."""
    p1, p2, p3, p4, p5 = _P64
    position = 0
    if len(data) < 32:
        value = p5
    else:
        lanes = [p1 + p2 & _M64, p2, 0, -p1 & _M64]
        while position + 32 <= len(data):
            for lane in range(4):
                lanes[lane] = _xxh_round(lanes[lane], _read64(data, position + 8 * lane))
            position += 32
        value = sum(_rotated(lane, bits, 64) for lane, bits in zip(lanes, (1, 7, 12, 18), strict=True)) & _M64
        for lane in lanes:
            value = (value ^ _xxh_round(0, lane)) * p1 + p4 & _M64
    value = value + len(data) & _M64
    while position + 8 <= len(data):
        value = _rotated(value ^ _xxh_round(0, _read64(data, position)), 27, 64) * p1 + p4 & _M64
        position += 8
    if position + 4 <= len(data):
        value = _rotated(value ^ _read32(data, position) * p1 & _M64, 23, 64) * p2 + p3 & _M64
        position += 4
    for byte in data[position:]:
        value = _rotated(value ^ byte * p5 & _M64, 11, 64) * p1 & _M64
    return _xxh64_avalanche(value)


def _xxh_round(lane: int, word: int) -> int:
    return _rotated(lane + word * _P64[1] & _M64, 31, 64) * _P64[0] & _M64


def _xxh64_avalanche(value: int) -> int:
    value = (value ^ value >> 33) * _P64[1] & _M64
    value = (value ^ value >> 29) * _P64[2] & _M64
    return value ^ value >> 32


def xxh3(data: bytes) -> int:
    """XXH3_64bits with the seed 0, for at most MAX_XXH3 bytes."""
    length = len(data)
    if length > 128:
        return _xxh3_middle(data)
    if length > 16:
        pairs = [(start, length - 16 - start) for start in range(0, (length + 31) // 32 * 16, 16)]
        mixed = sum(
            _mixed(data, position, 16 * number) for number, position in enumerate(p for pair in pairs for p in pair)
        )
        return _xxh3_avalanche(length * _P64[0] + mixed)
    if length > 8:
        low = _read64(data, 0) ^ _secret64(24) ^ _secret64(32)
        high = _read64(data, length - 8) ^ _secret64(40) ^ _secret64(48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _xxh3_avalanche(length + swapped + high + _folded(low, high))
    if length > 3:
        value = (_read32(data, length - 4) + (_read32(data, 0) << 32)) ^ _secret64(8) ^ _secret64(16)
        value ^= _rotated(value, 49, 64) ^ _rotated(value, 24, 64)
        value = value * _RRMXMX & _M64
        value = (value ^ (value >> 35) + length) * _RRMXMX & _M64
        return value ^ value >> 28
    if length:
        combined = data[0] << 16 | data[length >> 1] << 24 | data[-1] | length << 8
        return _xxh64_avalanche(combined ^ _read32(_SECRET, 0) ^ _read32(_SECRET, 4))
    return _xxh64_avalanche(_secret64(56) ^ _secret64(64))


def _xxh3_middle(data: bytes) -> int:
    """XXH3 of 129 to 240 bytes."""
    value = len(data) * _P64[0] + sum(_mixed(data, 16 * number, 16 * number) for number in range(8))
    value = _xxh3_avalanche(value)
    value += sum(_mixed(data, 16 * number, 16 * (number - 8) + 3) for number in range(8, len(data) // 16))
    return _xxh3_avalanche(value + _mixed(data, len(data) - 16, 119))


def _mixed(data: bytes, position: int, secret: int) -> int:
    return _folded(_read64(data, position) ^ _secret64(secret), _read64(data, position + 8) ^ _secret64(secret + 8))


def _folded(left: int, right: int) -> int:
    product = left * right
    return product & _M64 ^ product >> 64


def _xxh3_avalanche(value: int) -> int:
    value &= _M64
    value = (value ^ value >> 37) * 0x165667919E3779F9 & _M64
    return value ^ value >> 32


def _secret64(position: int) -> int:
    return _read64(_SECRET, position)


def _read32(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 4], "little")


def _read64(data: bytes, position: int) -> int:
    return int.from_bytes(data[position : position + 8], "little")


def jump(value: int, buckets: int) -> int:
    """The bucket of a 64-bit hash by jump consistent hashing (Lamping and Veach, 2014)."""
    bucket, following = -1, 0
    while following < buckets:
        bucket = following
        value = value * 2862933555777941757 + 1 & _M64
        following = int((bucket + 1) * (2**31 / ((value >> 33) + 1)))
    return bucket
