"""A proxy in each phase answers each command as a single server does, wherever the item is.

`excepted` knows the exceptions.
"""

import base64
import re
from collections.abc import Generator, Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final, Literal

import pytest

from corners.client import Client
from corners.server import Server
from memcached_operator.parts.ring import MOVING, Phase
from support.scaling import commands
from support.scaling.placement import moves, slot_of
from support.scaling.processes import memcacheds, phased, proxy

SIZES: Final = ((3, 4), (4, 3), pytest.param((2, 5), marks=pytest.mark.nightly))
CHANGING: Final = re.compile(rb"(?<= )([ctl])\d+")
"""Return flags of meta commands whose values differ between servers, or change with the time."""
TOKEN: Final = re.compile(rb"(?m)^(VALUE \S+ \d+ \d+) \d+\r$")

Place = Literal["old", "new", "nowhere"]


@dataclass(frozen=True)
class Ring:
    """A proxy in a phase of a change, its servers, and a server that has the same items."""

    proxy: Client
    servers: list[Client]
    single: Client
    old: int
    new: int
    phase: Phase

    def server(self, key: bytes, place: Place) -> Client:
        """The server of a key in one of the rings."""
        return self.servers[slot_of(key, self.old if place == "old" else self.new)]


@dataclass(frozen=True)
class Case:
    """A request for a key, and the item that it finds."""

    key: str
    in_base64: bool
    place: Place
    value: str

    @property
    def suffix(self) -> bytes:
        """The flag of the key."""
        return b" b" if self.in_base64 else b""


def reply(client: Client, request: bytes) -> bytes:
    """The whole reply to a request, which may be empty."""
    return client.request(request + b"mn\r\n", b"MN\r\n").removesuffix(b"MN\r\n")


def comparable(found: bytes) -> bytes:
    """A reply without tokens and times."""
    return CHANGING.sub(rb"\1", TOKEN.sub(rb"\1\r", found))


def moving_keys(old: int, new: int, *, in_base64: bool) -> Iterator[str]:
    """Keys that the change moves."""
    for number in count():
        text = base64.b64encode(b"\x01\xfe%06d" % number).decode() if in_base64 else f"key-{number}"
        if moves(text.encode(), old, new):
            yield text


def cases(old: int, new: int) -> Iterator[Case]:
    """Each form of a key with each place of its item."""
    for in_base64 in (False, True):
        keys = moving_keys(old, new, in_base64=in_base64)
        for place in ("old", "new", "nowhere"):
            for value in ("5",) if place == "nowhere" else ("5", "text"):
                yield Case(next(keys), in_base64, place, value)


def prepare(ring: Ring, case: Case) -> str:
    """Store the item of a case at its place, and in the single server; the token of both."""
    key = case.key.encode()
    for client in (*ring.servers, ring.single):
        reply(client, b"md %b%b\r\n" % (key, case.suffix))
    if case.place == "nowhere":
        return "1"
    store = b"ms %b %d F7 E4321%b\r\n%b\r\n" % (key, len(case.value), case.suffix, case.value.encode())
    # In finish, an item of the old place is lost.
    lost = ring.phase is Phase.FINISH and case.place == "old"
    for client in (ring.server(key, case.place), *([] if lost else [ring.single])):
        assert reply(client, store) == b"HD\r\n"
    return "4321"


def places_with(ring: Ring, case: Case) -> list[Place]:
    """The places that have the item."""
    question, key = b"mg %b%b\r\n" % (case.key.encode(), case.suffix), case.key.encode()
    places: tuple[Place, ...] = ("old", "new")
    return [place for place in places if reply(ring.server(key, place), question) == b"HD\r\n"]


def compared(ring: Ring, case: Case, request: bytes) -> tuple[list[bytes], list[bytes]]:
    """The replies to a request, and to a read after it: those of the proxy, and those of the single server."""
    read = b"mg %b v f t%b\r\n" % (case.key.encode(), case.suffix)
    return [comparable(reply(ring.proxy, each)) for each in (request, read)], [
        comparable(reply(ring.single, each)) for each in (request, read)
    ]


@pytest.fixture(params=SIZES, scope="module", ids=str)
def processes(request: pytest.FixtureRequest, root: Path) -> Generator[tuple[int, int, list[Server], Server]]:
    """The sizes of a change, its servers and a single one."""
    old, new = request.param
    with memcacheds(root, max(old, new) + 1) as (single, *servers):
        yield old, new, servers, single


@pytest.fixture(params=MOVING)
def ring(
    request: pytest.FixtureRequest, root: Path, processes: tuple[int, int, list[Server], Server]
) -> Generator[Ring]:
    """A change in each phase."""
    old, new, servers, single = processes
    with ExitStack() as stack:
        text = phased([each.port for each in servers], old, new, request.param)
        front = stack.enter_context(proxy(root, text))
        first, second, *others = (stack.enter_context(closing(each.connect())) for each in (front, single, *servers))
        yield Ring(first, others, second, old, new, request.param)


def excepted(ring: Ring, case: Case, request: bytes, found: list[bytes], expected: list[bytes]) -> bool:
    """Whether the replies are equal, or differ as documented."""
    if b" noreply" in request and found[0].startswith(b"CLIENT_ERROR") and not expected[0]:
        return found[1:] == expected[1:]  # a proxy always sends errors
    if ring.phase is Phase.FINISH and case.place == "old" and request.startswith((b"delete", b"md")):
        return found[1:] == expected[1:]  # an item that is lost is still deleted
    return found == expected


def test_replies_are_those_of_a_single_server(ring: Ring) -> None:
    different = list[tuple[Case, str, list[bytes], list[bytes]]]()
    for case in cases(ring.old, ring.new):
        for template in commands.requests(case.key, "{c}", base64=case.in_base64):
            request = template.replace(b"{c}", prepare(ring, case).encode())
            found, expected = compared(ring, case, request)
            if not excepted(ring, case, request, found, expected) or len(places_with(ring, case)) == 2:
                different.append((case, commands.name(request), found, expected))
    assert not different, "\n".join(map(str, different))
