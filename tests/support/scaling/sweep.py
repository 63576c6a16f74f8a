"""Removes items that are not at their slot, before proxies of a change of size serve."""

import base64
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Final

from corners.client import Client
from support.kube import eventually
from support.scaling.placement import slot_of

Sweep = Callable[[Sequence[int], int], object]
"""Removes from servers at these ports of loopback, by slot, what is elsewhere in a ring of so many slots."""

IN_BASE64: Final = re.compile(rb"[A-Za-z0-9+/]+=* b")


def sweep(ports: Sequence[int], size: int) -> int:
    """Remove all items that are not at their slot in a ring of `size` slots; returns their number."""
    return sum(_swept(port, slot, size) for slot, port in enumerate(ports))


def _swept(port: int, slot: int, size: int) -> int:
    """Remove items from a server until a pass finds none: items can move while they are listed."""
    removed = 0
    with closing(Client(port)) as client:
        while keys := [key for key, text in _listed(client) if slot_of(text, size) != slot]:
            for key in keys:
                client.request(b"md %b\r\n" % key)
            removed += len(keys)
    return removed


def _listed(client: Client) -> Iterator[tuple[bytes, bytes]]:
    """The keys of a server: with the flag of meta commands, and as proxies hash them."""
    for line in eventually(partial(_dump, client), description="no other dump runs") or ():
        key = line.removeprefix(b"mg ")
        # An append to a key in base64 makes memcached forget that it is one. The dump then has its bytes.
        if IN_BASE64.fullmatch(key):
            yield key, key.removesuffix(b" b")
        elif re.search(rb"[^!-~]", key):
            text = base64.b64encode(key)
            yield text + b" b", text
        else:
            yield key, key


def _dump(client: Client) -> Iterator[bytes] | None:
    """The lines of a dump of all items; None while another one runs."""
    reply = client.request(b"lru_crawler mgdump hash\r\n")
    if reply.startswith(b"BUSY"):
        return None
    while not reply.endswith(b"\r\nEN\r\n"):
        reply += client.request(b"")
    first, *lines = reply.removesuffix(b"EN\r\n").splitlines()
    assert first == b"OK", first
    return iter(lines)
