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
"""Points of each server on the rings of ketama, dalli, NGINX and the Java libraries."""
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


def pymemcache(text: Callable[[bytes], bytes]) -> Builder:
    """Rendezvous hashing over MurmurHash3 of `host:port-text`: pymemcache/client/rendezvous.py.

    `text`: of a key. IPv6 addresses have no brackets.
    """

    def build(servers: Sequence[Server]) -> Place:
        prefixes = [f"{server.host}:{server.port}-".encode() for server in servers]
        states = [hashes.MurmurPrefix.of(prefix) for prefix in prefixes]

        def score(index: int, key: bytes) -> tuple[int, bytes]:
            return hashes.murmur3(prefixes[index] + key, states[index]), prefixes[index]

        def place(key: bytes) -> int:
            hashed = text(key)
            return max(range(len(prefixes)), key=lambda index: score(index, hashed))

        return place

    return build


def low_bytes(key: bytes) -> bytes:
    """What pymemcache hashes of a key of the type str: the low 8 bits of each character, not its UTF-8."""
    if key.isascii():
        return key
    try:
        return bytes(ord(character) & 0xFF for character in key.decode())
    except UnicodeDecodeError:
        return key  # a str is always sent as valid UTF-8


def literal(key: bytes) -> bytes:
    """What pymemcache hashes of a key of the type bytes: its literal in Python."""
    return repr(key).encode()


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
    return ketama(_libmemcached_names(servers), libketama_hashes(len(servers)))


def npm_memcached(servers: Sequence[Server]) -> Place:
    """The ring of the package memcached of npm, which rounds in another way than libmemcached: hashring/index.js."""
    return ketama(_libmemcached_names(servers), npm_hashes(len(servers)))


def npm_differs(servers: Sequence[Server]) -> bool:
    """Whether the package memcached of npm has another ring than libmemcached: with 7, 14, 25, 28 and others."""
    return npm_hashes(len(servers)) != libketama_hashes(len(servers))


def libketama_hashes(number: int) -> int:
    """MD5 digests of each server on the ring of libmemcached: 40, or 39 where its single precision rounds down."""
    share = _single(_single(1 / number) * KETAMA_POINTS)
    return int(_single(_single(_single(share / 4) * number) + _single(1e-10)))


def npm_hashes(number: int) -> int:
    """MD5 digests of each server on the ring of npm's memcached: 40, or 39 where double precision rounds down."""
    return int(1 / number * (KETAMA_POINTS // 4) * number)


def _single(value: float) -> float:
    """The nearest number of single precision."""
    return struct.unpack("f", struct.pack("f", value))[0]


def _libmemcached_names(servers: Sequence[Server]) -> list[str]:
    return [_libmemcached_name(server) for server in servers]


def _libmemcached_name(server: Server) -> str:
    return server.host if server.port == DEFAULT_PORT else f"{server.host}:{server.port}"


def named_ketama(servers: Sequence[Server]) -> Place:
    """The ring of xmemcached over the names in its list: KetamaMemcachedSessionLocator.java, getSockStr."""
    return ketama([str(server) for server in servers], KETAMA_POINTS // 4)


def ketama(names: Sequence[str], digests: int, digest: Callable[[bytes], bytes] | None = None) -> Place:
    """Four points from each digest of `name-number`, and the same digest for keys: libketama, by Richard Jones.

    `digests`: of each server. `digest`: MD5 by default.
    """
    digest = digest or md5_digest
    points = [
        (point, index)
        for index, name in enumerate(names)
        for number in range(digests)
        for point in struct.unpack_from("<4I", digest(f"{name}-{number}".encode()))
    ]
    return ring(points, lambda key: int.from_bytes(digest(key)[:4], "little"))


def nginx(servers: Sequence[Server]) -> Place:
    """The ring of NGINX's `hash … consistent`: each point is the CRC-32 of the server and of the point before it.

    From ngx_http_upstream_init_chash in ngx_http_upstream_hash_module.c.
    """
    points = list[tuple[int, int]]()
    for index, server in enumerate(servers):
        start, point = zlib.crc32(f"{server.host}\0{server.port}".encode()), 0
        for _ in range(KETAMA_POINTS):
            point = zlib.crc32(point.to_bytes(4, "little"), start)
            points.append((point, index))
    return ring(points, zlib.crc32)


def md5(data: bytes) -> int:
    """The first four bytes of the MD5 digest."""
    return int.from_bytes(md5_digest(data)[:4], "little")


def md5_digest(data: bytes) -> bytes:
    """The MD5 digest."""
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
        md5_digest(f"{server}-{number}".encode()).hex().encode(): index
        for index, server in enumerate(servers)
        for number in range(SWIFT_POINTS)
    }
    ordered = sorted(points)
    return lambda key: points[ordered[(bisect(ordered, key) + 1) % len(ordered)]]


def python_memcached(key: bytes) -> int:
    """15 bits of CRC-32: cmemcache_hash in memcache.py, and the default of PHP's extension memcache and of
    Perl's libraries Cache::Memcached and Cache::Memcached::Fast.
    """
    return zlib.crc32(key) >> 16 & 0x7FFF or 1
