"""Addresses on the command line."""

from ipaddress import ip_address
from typing import Final, NamedTuple

MAX_LENGTH: Final = 64
"""Characters of an address; the longest IPv6 address with a port has 53."""


class Address(NamedTuple):
    """An IP address and a port. `host` is empty for all addresses."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, host_required: bool) -> Address:
    """Parse `127.0.0.1:9150`, `[::1]:9150` or, unless `host_required`, `:9150`.

    Names are not resolved: a name server that does not reply would block the agent. Raises ValueError.
    """
    host, _, port = text.rpartition(":")
    syntax = "IP:PORT" if host_required else "IP:PORT or :PORT"
    if len(text) > MAX_LENGTH or not _is_valid_host(host, host_required) or not is_port(port):
        raise ValueError(f"{text[:MAX_LENGTH]!r}: invalid address; use {syntax}, with a port from 1 to 65535")
    return Address(host.strip("[]"), int(port))


def _is_valid_host(host: str, required: bool) -> bool:
    if not host:
        return not required
    bracketed = host.startswith("[") and host.endswith("]")
    try:
        return ip_address(host[1:-1] if bracketed else host).version == (6 if bracketed else 4)
    except ValueError:
        return False


def is_port(port: str) -> bool:
    """Whether this is a port from 1 to 65535."""
    return port.isascii() and port.isdecimal() and len(port) <= 5 and 1 <= int(port) <= 65535
