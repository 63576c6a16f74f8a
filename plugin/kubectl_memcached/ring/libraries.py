"""The client libraries whose placements are known."""

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from kubectl_memcached.ring import hashes, java, placements, proxies
from kubectl_memcached.ring.placements import Builder, Server, jump, libmemcached, pymemcache, remainder


@dataclass(frozen=True)
class Library:
    """A library with one of its settings. `name`: part of a sentence: `where {name} with 3 servers looks for them`.

    `named`: whether the names of the servers matter. Otherwise only their order does. `prefixed`: whether the library
    can add a prefix to keys that it does not hash. `verb`: between its name and the servers on its ring. `also`: other
    libraries with the same ring. `of`: the name of the entry of which this one is a variant, and `remedy`: for clients
    that use both. `fits`: whether a client with these servers can be of this library, and does not have the ring of an
    earlier entry.
    """

    name: str
    build: Builder
    named: bool = True
    prefixed: bool = False
    verb: str = "lists"
    also: str = ""
    of: str = ""
    remedy: str = ""
    fits: Callable[[Sequence[Server]], bool] = lambda _: True

    @property
    def ring(self) -> str:
        """The name of the entry that the variants of a library share."""
        return self.of or self.name


JDK: Final = (
    "Java writes IPv6 addresses on its rings in another way since JDK 14: run all clients with JDK 14 or later."
)
ADDRESSES: Final = "resolves its list to"

LIBRARIES: Final = (
    Library("pymemcache", pymemcache(placements.low_bytes), prefixed=True),
    Library("pylibmc (ketama)", libmemcached(hashes.one_at_a_time), prefixed=True),
    Library(
        "php-memcached (ketama)",
        placements.libketama,
        prefixed=True,
        also="pylibmc with ketama_weighted and, with most numbers of servers, npm's memcached",
    ),
    Library("gomemcache or memjs (rendezvous hashing)", placements.rendezvous),
    Library("xmemcached (ketama)", placements.named_ketama),
    Library("dalli", placements.dalli),
    Library("spymemcached (ketama)", java.spymemcached(brackets=True), also="xmemcached without `true`"),
    Library(
        "libmemcached (ketama with MD5)",
        libmemcached(placements.md5),
        prefixed=True,
        also="libmc",
    ),
    Library("Swift", placements.swift),
    Library("gomemcache", remainder(zlib.crc32), named=False),
    Library("memjs", remainder(java.absolute_hash), named=False),
    Library("Loki, Mimir, Tempo or Thanos", jump(hashes.xxh64), named=False),
    Library("memcached's proxy", jump(hashes.xxh3), named=False),
    Library("libmemcached (without ketama)", remainder(hashes.one_at_a_time), named=False, prefixed=True),
    Library(
        "python-memcached",
        remainder(placements.python_memcached),
        named=False,
        also="Cache::Memcached and Cache::Memcached::Fast",
    ),
    Library("spymemcached or xmemcached (without ketama)", remainder(java.string_hash), named=False),
    Library("npm's memcached (ketama)", placements.npm_memcached, fits=placements.npm_differs),
    Library("NGINX or Cache::Memcached::Fast (ketama)", placements.nginx),
    Library("ElastiCache's client", java.elasticache(brackets=True), verb=ADDRESSES, fits=java.only_addresses),
    Library(
        "pymemcache (bytes keys)",
        pymemcache(placements.literal),
        prefixed=True,
        of="pymemcache",
        remedy="pymemcache looks for a key of the type bytes on another server than for the same text as str: "
        "use one type in all clients.",
    ),
    Library(
        "spymemcached (ketama, JDK 13 or earlier)",
        java.spymemcached(brackets=False),
        of="spymemcached (ketama)",
        remedy=JDK,
        fits=java.any_ipv6,
    ),
    Library(
        "ElastiCache's client (JDK 13 or earlier)",
        java.elasticache(brackets=False),
        of="ElastiCache's client",
        remedy=JDK,
        verb=ADDRESSES,
        fits=java.only_addresses_any_ipv6,
    ),
    Library(
        "memcached's proxy (keys in base64)",
        jump(proxies.base64_hash),
        named=False,
        of="memcached's proxy",
        remedy="Behind a proxy, a key in base64 is another key: send each key in one form in all clients.",
    ),
)
"""In the order of preference: if several match, the first is reported. docs/clients.md recommends the first six."""
