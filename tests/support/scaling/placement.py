"""The slot of each key behind memcached's proxy, for keys of all lengths."""

from struct import unpack_from
from typing import Final

from kubectl_memcached.ring.hashes import MAX_XXH3, jump, xxh3

_M64: Final = 2**64 - 1
_PRIMES: Final = (
    *(0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5),
    *(0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D),
)
"""Five of 64 bits and three of 32 bits, from the specification of xxHash."""
_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
"""The default secret of XXH3, from the specification of xxHash."""
STRIPE: Final = 64
"""Bytes."""


def slot_of(key: bytes, slots: int) -> int:
    """The slot of a key of 1 to 250 bytes, in the form in which the request has it."""
    return jump(xxh3(key) if len(key) <= MAX_XXH3 else _long(key), slots)


def moves(key: bytes, old: int, new: int) -> bool:
    """Whether a change from `old` to `new` slots moves a key."""
    return slot_of(key, old) != slot_of(key, new)


def _long(data: bytes) -> int:
    """XXH3_64bits with the seed 0, for 241 to 1,024 bytes: stripes of 64 bytes, and one of the last 64 bytes."""
    one, two, three, four, five, short_one, short_two, short_three = _PRIMES
    lanes = [short_three, one, two, three, four, short_two, five, short_one]
    for number in range((len(data) - 1) // STRIPE):
        _add(lanes, data[STRIPE * number :], 8 * number)
    _add(lanes, data[-STRIPE:], len(_SECRET) - STRIPE - 7)
    keyed = [lane ^ _word(_SECRET, 11 + 8 * number) for number, lane in enumerate(lanes)]
    merged = len(data) * one + sum(_folded(*keyed[number : number + 2]) for number in range(0, 8, 2)) & _M64
    mixed = (merged ^ merged >> 37) * 0x165667919E3779F9 & _M64
    return mixed ^ mixed >> 32


def _add(lanes: list[int], data: bytes, secret: int) -> None:
    """Add a stripe. `secret`: the offset of the part of the secret for it."""
    for lane in range(8):
        word = _word(data, 8 * lane)
        keyed = word ^ _word(_SECRET, secret + 8 * lane)
        lanes[lane ^ 1] = lanes[lane ^ 1] + word & _M64
        lanes[lane] = lanes[lane] + (keyed & 2**32 - 1) * (keyed >> 32) & _M64


def _word(data: bytes, position: int) -> int:
    (word,) = unpack_from("<Q", data, position)
    return word


def _folded(left: int, right: int) -> int:
    product = left * right
    return product & _M64 ^ product >> 64
