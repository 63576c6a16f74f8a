"""Bind addresses, in the syntax that Go programs use."""

from typing import NamedTuple


class Address(NamedTuple):
    host: str | None  # None: all addresses
    port: int


def parse_address(text: str) -> Address | None:
    """Parse `:8081`, `127.0.0.1:8081` or `[::1]:8081`. Returns None for `0`, which disables the server.

    Raises ValueError for any other text.
    """
    if text == "0":
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise ValueError(f"{text!r}: invalid bind address; use HOST:PORT, :PORT, or 0 to disable the server")
    return Address(host.strip("[]") or None, int(port))
