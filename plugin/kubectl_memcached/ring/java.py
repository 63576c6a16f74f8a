"""The placements of client libraries in Java, which depend on the JDK for servers with IPv6 addresses."""

import hashlib
import ipaddress
from collections.abc import Sequence

from kubectl_memcached.ring import hashes
from kubectl_memcached.ring.placements import KETAMA_POINTS, Builder, Place, Server, ketama

DIGESTS = KETAMA_POINTS // 4
"""Digests of each server on the rings of spymemcached and its forks."""


def spymemcached(*, brackets: bool) -> Builder:
    """The ring of spymemcached, and of xmemcached without `true`: KetamaNodeLocator.java, getSocketAddressForNode.

    `brackets`: around IPv6 addresses, since JDK 14.
    """

    def build(servers: Sequence[Server]) -> Place:
        return ketama([_socket_address(server, brackets) for server in servers], DIGESTS)

    return build


def elasticache(*, brackets: bool) -> Builder:
    """The ring of the ElastiCache cluster client: as spymemcached, but with SHA-384 and without names.

    From DefaultHashAlgorithm.java. `brackets`: around IPv6 addresses, since JDK 14.
    """

    def build(servers: Sequence[Server]) -> Place:
        names = [f"{_literal(server.host, brackets)}:{server.port}" for server in servers]
        return ketama(names, DIGESTS, lambda data: hashlib.sha384(data).digest())

    return build


def only_addresses(servers: Sequence[Server]) -> bool:
    """Whether no server has a name: the ring of the ElastiCache cluster client has addresses only."""
    return all(_address(server.host) for server in servers)


def any_ipv6(servers: Sequence[Server]) -> bool:
    """Whether the JDK matters."""
    return any(":" in (server.address or server.host) for server in servers)


def only_addresses_any_ipv6(servers: Sequence[Server]) -> bool:
    """Both."""
    return only_addresses(servers) and any_ipv6(servers)


def _socket_address(server: Server, brackets: bool) -> str:
    """Java's `InetSocketAddress.toString` of a resolved name, without the slash in front of an address."""
    if not server.address:
        return f"{_literal(server.host, brackets)}:{server.port}"
    return f"{server.host}/{_literal(server.address, brackets)}:{server.port}"


def _literal(host: str, brackets: bool) -> str:
    """Java's text of an IPv6 address: eight numbers, none left out. Other addresses and names do not change."""
    address = _address(host)
    if not isinstance(address, ipaddress.IPv6Address):
        return host
    text = ":".join(f"{int(group, 16):x}" for group in address.exploded.split(":"))
    return f"[{text}]" if brackets else text


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def string_hash(key: bytes) -> int:
    """Java's `String.hashCode` as an unsigned number of 32 bits, as spymemcached and xmemcached use it."""
    return hashes.java(key.decode("utf-8", "replace"))


def absolute_hash(key: bytes) -> int:
    """The absolute value of the same hash, as memjs computes it: lib/memjs/utils.js."""
    value = string_hash(key)
    return value if value < 2**31 else 2**32 - value
