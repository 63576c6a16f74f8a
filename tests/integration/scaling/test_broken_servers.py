"""Requests for a key that moves while one of its two servers does not respond, and the counters of the handler."""

from collections.abc import Generator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

import pytest

from corners.client import Client
from memcached_operator.parts.ring import MOVING, Phase
from support.scaling.placement import moves
from support.scaling.processes import memcacheds, phased, proxy

KEY: Final = next(b"key-%d" % number for number in range(100) if moves(b"key-%d" % number, 1, 2))
ERROR: Final = b"SERVER_ERROR"
VALUE: Final = b"VALUE %b 0 1\r\n5\r\nEND\r\n" % KEY

Place = Literal["near", "far"]


@dataclass(frozen=True)
class Key:
    """A proxy, and the two servers of a key in the order in which the proxy's phase uses them."""

    proxy: Client
    near: Client
    far: Client

    def has(self, place: Place) -> bool:
        """Whether a server has the item."""
        return (self.near if place == "near" else self.far).request(b"mg %b\r\n" % KEY).startswith(b"HD")


@dataclass(frozen=True)
class Case:
    """A request while a server is `broken`, and the reply. The other server has the item if `stored`.

    `keeps`: whether the other server has it afterwards.
    """

    phases: tuple[Phase, ...]
    broken: Place
    stored: bool
    request: bytes
    reply: bytes
    keeps: bool


PREPARE, MOVE, FINISH = MOVING
SEARCHING: Final = (PREPARE, MOVE)
ALL: Final = MOVING
SET, ADD, REPLACE = (b"%b %b 0 0 1\r\n6\r\n" % (word, KEY) for word in (b"set", b"add", b"replace"))
GET, DELETE, INCR = b"get %b\r\n" % KEY, b"delete %b\r\n" % KEY, b"incr %b 1\r\n" % KEY
VIVIFY, COUNT = b"mg %b N30 v\r\n" % KEY, b"ma %b N30\r\n" % KEY
CASES: Final = (
    Case(ALL, "far", True, GET, VALUE, keeps=True),
    Case((PREPARE, FINISH), "far", False, GET, b"END\r\n", keeps=False),
    Case((MOVE,), "far", False, GET, ERROR, keeps=False),
    Case(SEARCHING, "near", True, GET, VALUE, keeps=True),
    Case(ALL, "near", False, GET, ERROR, keeps=False),
    Case(ALL, "far", True, SET, ERROR, keeps=True),
    Case(ALL, "near", True, SET, ERROR, keeps=True),
    Case(SEARCHING, "far", False, ADD, ERROR, keeps=False),
    Case(SEARCHING, "near", True, ADD, b"NOT_STORED\r\n", keeps=True),
    Case(ALL, "near", False, ADD, ERROR, keeps=False),
    Case(ALL, "far", True, REPLACE, ERROR, keeps=True),
    Case((PREPARE,), "far", False, REPLACE, b"NOT_STORED\r\n", keeps=False),
    Case((MOVE,), "far", False, REPLACE, ERROR, keeps=False),
    Case(ALL, "near", True, INCR, ERROR, keeps=True),
    Case(ALL, "far", True, DELETE, ERROR, keeps=True),
    Case(ALL, "near", True, DELETE, ERROR, keeps=False),
    Case((PREPARE,), "far", False, VIVIFY, b"EN\r\n", keeps=False),
    Case((MOVE,), "far", False, VIVIFY, ERROR, keeps=False),
    Case((FINISH,), "far", False, VIVIFY, ERROR, keeps=True),
    Case(SEARCHING, "near", True, VIVIFY, b"VA 1\r\n5\r\n", keeps=True),
    Case((PREPARE,), "far", False, COUNT, b"NF\r\n", keeps=False),
    Case((MOVE,), "far", False, COUNT, ERROR, keeps=False),
)


@pytest.fixture
def key(request: pytest.FixtureRequest, root: Path) -> Generator[Key]:
    """A key that moves from one server to another, of which `request.param` names a phase and the broken one."""
    phase, broken = request.param
    with memcacheds(root, 2) as servers, ExitStack() as stack:
        front = stack.enter_context(proxy(root, phased([each.port for each in servers], 1, 2, phase)))
        first, *clients = (stack.enter_context(closing(each.connect())) for each in (front, *servers))
        near, far = clients if phase is PREPARE else clients[::-1]
        if broken:
            process = servers[clients.index(near if broken == "near" else far)].process
            process.kill()
            process.wait()
        yield Key(first, near, far)


def each_situation() -> list[tuple[Phase, Place]]:
    """A phase and a broken server."""
    return [(phase, place) for phase in MOVING for place in ("near", "far")]


def whole(client: Client, request: bytes) -> bytes:
    """The whole reply to a request."""
    return client.request(request + b"mn\r\n", b"MN\r\n").removesuffix(b"MN\r\n")


@pytest.mark.parametrize("key", each_situation(), indirect=True, ids=str)
def test_server_that_does_not_respond_is_not_one_without_the_item(key: Key, request: pytest.FixtureRequest) -> None:
    phase, broken = request.node.callspec.params["key"]
    alive: Place = "near" if broken == "far" else "far"
    live = key.near if alive == "near" else key.far
    cases = [case for case in CASES if phase in case.phases and case.broken == broken]
    assert cases
    found = list[tuple[Case, bytes, bool]]()
    for case in cases:
        live.request(b"set %b 0 0 1\r\n5\r\n" % KEY if case.stored else DELETE)
        reply = whole(key.proxy, case.request)
        found.append((case, reply, key.has(alive)))
    assert [each for each in found if not each[1].startswith(each[0].reply) or each[2] != each[0].keeps] == []


@pytest.mark.parametrize("key", [(phase, "") for phase in MOVING], indirect=True, ids=str)
def test_hits_and_misses_are_counted_by_place(key: Key, request: pytest.FixtureRequest) -> None:
    phase, _ = request.node.callspec.params["key"]
    for client in (key.near, key.far, key.near):
        client.request(DELETE)
    whole(key.proxy, GET)
    key.near.request(b"set %b 0 0 1\r\n5\r\n" % KEY)
    for _ in range(2):
        assert whole(key.proxy, GET) == VALUE
    key.near.request(DELETE)
    key.far.request(b"set %b 0 0 1\r\n5\r\n" % KEY)
    for _ in range(4):
        whole(key.proxy, GET)
    near, far = ("old", "new") if phase is PREPARE else ("new", "old")
    stats = key.proxy.stats("proxy")
    found = {name: int(stats[f"user_scale_{name}"]) for name in ("new", "old", "miss", "refused")}
    assert found == {near: 2, far: 0 if phase is FINISH else 4, "miss": 5 if phase is FINISH else 1, "refused": 0}


@pytest.mark.parametrize("key", [(phase, "far") for phase in MOVING], indirect=True, ids=str)
def test_writes_that_are_not_acknowledged_are_counted(key: Key) -> None:
    for request in (SET, DELETE, SET):
        assert whole(key.proxy, request).startswith(ERROR)
    assert key.proxy.stats("proxy")["user_scale_refused"] == "3"
