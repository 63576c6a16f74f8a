"""The placements of `ring` are those of the real libraries.

placements.json was recorded with the libraries and versions that it names: by their functions where they can be called
without a server, otherwise by the items in memcacheds that they stored.
"""

import hashlib
import json
import string
from pathlib import Path
from typing import Any, Final

import pytest

from kubectl_memcached.ring import hashes
from kubectl_memcached.ring.libraries import LIBRARIES
from kubectl_memcached.ring.placements import Server, libketama_hashes, npm_differs

RECORDED: Final[list[dict[str, Any]]] = json.loads((Path(__file__).parent / "placements.json").read_text())
DIGITS: Final = string.digits + string.ascii_letters
"""The digits of `places`: the index of the server of each key."""
KEYS: Final = {
    "ascii": [f"user:{number}:{number * number % 9973}".encode() for number in range(160)],
    "text": [f"näme:{number}:名前€{number * number % 9973}".encode() for number in range(160)],
}
BY_NAME: Final = {library.name: library for library in LIBRARIES}


def server(text: str) -> Server:
    """`host:port`, or `host/address:port`."""
    name, _, port = text.rpartition(":")
    host, _, address = name.partition("/")
    return Server(host, int(port), address)


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: f"{each['version']}-{len(each['servers'])}")
def test_keys_are_placed_as_by_the_library(recorded: dict[str, Any]) -> None:
    place = BY_NAME[recorded["library"]].build([server(each) for each in recorded["servers"]])
    # Swift stores MD5 digests of its keys.
    swift = recorded["library"] == "Swift"
    keys = KEYS[recorded.get("keys", "ascii")]
    keys = [hashlib.md5(key, usedforsecurity=False).hexdigest().encode() if swift else key for key in keys]
    assert "".join(DIGITS[place(key)] for key in keys) == recorded["places"]


def test_each_library_was_recorded() -> None:
    assert {each["library"] for each in RECORDED} == BY_NAME.keys()


@pytest.mark.parametrize(
    ("length", "xxh64", "xxh3"),
    [
        (0, 0xEF46DB3751D8E999, 0x2D06800538D394C2),
        (3, 0x31D2363F52E564C9, 0xA9088DDA485B481C),
        (4, 0xB4D516AF63F9C743, 0x57648C318A7A307E),
        (16, 0xA7389F0915097A20, 0x2BD926D88792965A),
        (17, 0xF9D1BBEED8D82F71, 0x621F018AAD19B14A),
        (65, 0x4CC08A8E831269EA, 0x041802F929FDE152),
        (128, 0xCFFB1A61436C3320, 0x104C5158A0B84B98),
        (129, 0xF27CA4469FDB71C7, 0x4FDE2D10F0BCDFEA),
        (240, 0xD3696CB87DF3AF75, 0xC8FCAF51FEC964B0),
    ],
)
def test_hashes_of_each_length(length: int, xxh64: int, xxh3: int) -> None:
    """With values of the package xxhash 3.5.0."""
    data = bytes((7 * index + length) % 251 for index in range(length))
    assert (hashes.xxh64(data), hashes.xxh3(data)) == (xxh64, xxh3)


def test_single_precision_costs_some_rings_of_libmemcached_points() -> None:
    """Checked with libmemcached 1.1.4: with 40 digests, keys of 47 servers differ."""
    assert [libketama_hashes(number) for number in (3, 25, 47)] == [40, 39, 39]


def test_package_of_npm_rounds_as_recorded() -> None:
    """The numbers of servers up to 50 with which the ring of hashring 3.2.0 differs from that of libmemcached 1.1.4."""
    differing = [number for number in range(1, 51) if npm_differs([Server("", 0)] * number)]
    assert differing == [7, 14, 25, 28, 47, 49, 50]


@pytest.mark.parametrize("port", [11211, 11212])
def test_address_of_ipv6_has_brackets(port: int) -> None:
    assert str(Server("fd00::1", port)) == f"[fd00::1]:{port}"
