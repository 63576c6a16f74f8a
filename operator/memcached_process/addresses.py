"""Addresses to listen on, as Go programs write them."""

from typing import NamedTuple


class Address(NamedTuple):
    host: str | None  # None: every address of the machine
    port: int


def parse_address(text: str) -> Address | None:
    """`:8081`, `127.0.0.1:8081` or `[::1]:8081`; None for `0`, which means: do not listen.

    Raises ValueError with a sentence for anything else.
    """
    if text == "0":
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise ValueError(f"{text!r} is no address to listen on: give HOST:PORT, :PORT, or 0 for none")
    return Address(host.strip("[]") or None, int(port))
