"""The placements of client libraries: which server of a list a key belongs to.

Each docstring names the source of its algorithm. tests/unit/plugin/placements.json has values of the real libraries.
"""

import hashlib
import struct
import zlib
from bisect import bisect, bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_memcached.ring import hashes

DEFAULT_PORT: Final = 11211
"""libmemcached leaves this port out of the names on its ring."""
KETAMA_POINTS: Final = 160
"""Points of each server on the rings of ketama, dalli and the Java libraries."""
LIBMEMCACHED_POINTS: Final = 100
"""Points of each server on the ring of libmemcached without weights."""
SWIFT_POINTS: Final = 50
"""NODE_WEIGHT in swift/common/memcached.py."""


@dataclass(frozen=True)
class Server:
    """A server in the list of a client. `address`: its IP address if `host` is a name, otherwise empty."""

    host: str
    port: int
    address: str = ""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


Place = Callable[[bytes], int]
"""The index of the server that a key belongs to."""
Builder = Callable[[Sequence[Server]], Place]


def remainder(value: Callable[[bytes], int]) -> Builder:
    """A hash modulo the number of servers."""

    def build(servers: Sequence[Server]) -> Place:
        return lambda key: value(key) % len(servers)

    return build


def jump(value: Callable[[bytes], int]) -> Builder:
    """Jump consistent hashing over the positions of the servers."""

    def build(servers: Sequence[Server]) -> Place:
        return lambda key: hashes.jump(value(key), len(servers))

    return build


def pymemcache(servers: Sequence[Server]) -> Place:
    """Rendezvous hashing over MurmurHash3 of `host:port-key`: pymemcache/client/rendezvous.py."""
    prefixes = [f"{server}-".encode() for server in servers]
    states = [hashes.MurmurPrefix(prefix) for prefix in prefixes]

    def score(index: int, key: bytes) -> tuple[int, bytes]:
        return hashes.murmur3(prefixes[index] + key, states[index]), prefixes[index]

    def place(key: bytes) -> int:
        return max(range(len(prefixes)), key=lambda index: score(index, key))

    return place


def rendezvous(servers: Sequence[Server]) -> Place:
    """Rendezvous hashing over SHA-256 of `host:port key`: the code for gomemcache and memjs in docs/clients.md."""
    prefixes = [hashlib.sha256(f"{server} ".encode()) for server in servers]

    def score(index: int, key: bytes) -> bytes:
        digest = prefixes[index].copy()
        digest.update(key)
        return digest.digest()

    return lambda key: max(range(len(prefixes)), key=lambda index: score(index, key))


def ring(points: Sequence[tuple[int, int]], value: Callable[[bytes], int]) -> Place:
    """A ring of points with the indexes of their servers. A key belongs to the first point at or after its hash."""
    ordered = sorted(points)
    values = [point for point, _ in ordered]

    def place(key: bytes) -> int:
        return ordered[bisect_left(values, value(key)) % len(ordered)][1]

    return place


def libmemcached(value: Callable[[bytes], int]) -> Builder:
    """The ring of libmemcached without weights, with its hash for points and keys: src/libmemcached/hosts.cc."""

    def build(servers: Sequence[Server]) -> Place:
        points = [
            (value(f"{_libmemcached_name(server)}-{number}".encode()), index)
            for index, server in enumerate(servers)
            for number in range(LIBMEMCACHED_POINTS)
        ]
        return ring(points, value)

    return build


def libketama(servers: Sequence[Server]) -> Place:
    """The ring of libmemcached with weights, which all are 1: src/libmemcached/hosts.cc."""
    hashes_per_server = libketama_hashes(len(servers))
    return _ketama([_libmemcached_name(server) for server in servers], hashes_per_server)


def libketama_hashes(number: int) -> int:
    """MD5 digests of each server on the ring of libmemcached: 40, or 39 where its single precision rounds down."""
    share = _single(_single(1 / number) * KETAMA_POINTS)
    return int(_single(_single(_single(share / 4) * number) + _single(1e-10)))


def _single(value: float) -> float:
    """The nearest number of single precision."""
    return struct.unpack("f", struct.pack("f", value))[0]


def _libmemcached_name(server: Server) -> str:
    return server.host if server.port == DEFAULT_PORT else f"{server.host}:{server.port}"


def java_ketama(servers: Sequence[Server]) -> Place:
    """The ring of spymemcached and its forks, and of xmemcached: KetamaNodeLocator.java, getSocketAddressForNode."""
    return _ketama([_socket_address(server) for server in servers], KETAMA_POINTS // 4)


def named_ketama(servers: Sequence[Server]) -> Place:
    """The ring of xmemcached over the names in its list: KetamaMemcachedSessionLocator.java, getSockStr."""
    return _ketama([str(server) for server in servers], KETAMA_POINTS // 4)


def _socket_address(server: Server) -> str:
    """Java's `InetSocketAddress.toString` of a resolved name, without the slash in front of an address."""
    return f"{server.host}/{server.address}:{server.port}" if server.address else str(server)


def _ketama(names: Sequence[str], hashes_per_server: int) -> Place:
    """Four points from each MD5 digest of `name-number`, and MD5 for keys: libketama, by Richard Jones."""
    points = [
        (point, index)
        for index, name in enumerate(names)
        for number in range(hashes_per_server)
        for point in struct.unpack("<4I", _md5(f"{name}-{number}".encode()))
    ]
    return ring(points, md5)


def md5(data: bytes) -> int:
    """The first four bytes of the MD5 digest."""
    return int.from_bytes(_md5(data)[:4], "little")


def _md5(data: bytes) -> bytes:
    return hashlib.md5(data, usedforsecurity=False).digest()


def dalli(servers: Sequence[Server]) -> Place:
    """The ring of dalli, on which a key belongs to the last point at or before its CRC-32: lib/dalli/ring.rb."""
    points = sorted(
        (int.from_bytes(hashlib.sha1(f"{server}:{number}".encode(), usedforsecurity=False).digest()[:4], "big"), index)
        for index, server in enumerate(servers)
        for number in range(KETAMA_POINTS)
    )
    values = [value for value, _ in points]
    return lambda key: points[bisect(values, zlib.crc32(key)) - 1][1]


def swift(servers: Sequence[Server]) -> Place:
    """The ring of Swift, whose keys are MD5 digests. It skips a point: swift/common/memcached.py, `_get_conns`."""
    points = {
        _md5(f"{server}-{number}".encode()).hex().encode(): index
        for index, server in enumerate(servers)
        for number in range(SWIFT_POINTS)
    }
    ordered = sorted(points)
    return lambda key: points[ordered[(bisect(ordered, key) + 1) % len(ordered)]]


def java_hash(key: bytes) -> int:
    """Java's `String.hashCode` as an unsigned number of 32 bits, as spymemcached and xmemcached use it."""
    return hashes.java(key.decode("utf-8", "replace"))


def javascript_hash(key: bytes) -> int:
    """The absolute value of the same hash: memjs, lib/memjs/utils.js."""
    value = java_hash(key)
    return value if value < 2**31 else 2**32 - value


def python_memcached(key: bytes) -> int:
    """15 bits of CRC-32: cmemcache_hash in memcache.py, and the default of PHP's extension memcache."""
    return zlib.crc32(key) >> 16 & 0x7FFF or 1
