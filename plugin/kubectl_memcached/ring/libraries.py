"""The client libraries whose placements are known."""

import zlib
from dataclasses import dataclass
from typing import Final

from kubectl_memcached.ring import hashes, placements
from kubectl_memcached.ring.placements import Builder, jump, libmemcached, remainder


@dataclass(frozen=True)
class Library:
    """A library with one of its settings. `name`: part of a sentence: `where {name} with 3 servers looks for them`.

    `named`: whether the names of the servers matter. Otherwise only their order does. `prefixed`: whether the library
    can add a prefix to keys that it does not hash.
    """

    name: str
    build: Builder
    named: bool = True
    prefixed: bool = False


LIBRARIES: Final = (
    Library("pymemcache", placements.pymemcache, prefixed=True),
    Library("pylibmc (ketama)", libmemcached(hashes.one_at_a_time), prefixed=True),
    Library("php-memcached (ketama)", placements.libketama, prefixed=True),
    Library("gomemcache or memjs (rendezvous hashing)", placements.rendezvous),
    Library("xmemcached (ketama)", placements.named_ketama),
    Library("dalli", placements.dalli),
    Library("spymemcached (ketama)", placements.java_ketama),
    Library("libmemcached (ketama with MD5)", libmemcached(placements.md5), prefixed=True),
    Library("Swift", placements.swift),
    Library("gomemcache", remainder(zlib.crc32), named=False),
    Library("memjs", remainder(placements.javascript_hash), named=False),
    Library("Loki, Mimir, Tempo or Thanos", jump(hashes.xxh64), named=False),
    Library("memcached's proxy", jump(hashes.xxh3), named=False),
    Library("libmemcached (without ketama)", remainder(hashes.one_at_a_time), named=False, prefixed=True),
    Library("python-memcached", remainder(placements.python_memcached), named=False),
    Library("spymemcached or xmemcached (without ketama)", remainder(placements.java_hash), named=False),
)
"""In the order of preference: if several match, the first is reported. docs/clients.md recommends the first six."""
