"""Calls with several keys while a slot is broken, with the settings of docs/clients.md. These tests need no pods.

gomemcache, xmemcached and dalli have multi-gets only; memjs has no such calls.
"""

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from clients import libraries
from clients.loopback import BROKEN, KEYS, Slots, filled, slots
from clients.running import Client, Result
from cluster.shell import run
from support.kube import eventually
from support.waiting import STEP

TIMEOUT: Final = 0.5
"""Seconds that the settings give a server to answer."""


class Seen(NamedTuple):
    """What a multi-get returns. `live`: which keys of the other slots; `error`: whether it fails."""

    live: str
    error: bool = False


ENDED: Final = {
    "pymemcache": Seen("all"),
    "pylibmc": Seen("some"),
    "pylibmc of Debian": Seen("all"),
    "gomemcache": Seen("all", error=True),
    "xmemcached": Seen("none", error=True),
    "php-memcached": Seen("all"),
    "dalli": Seen("none"),
}
"""The first multi-get after the process of a slot has ended."""
HANGS: Final = {
    "pymemcache": Seen("all"),
    "pylibmc": Seen("all"),
    "pylibmc of Debian": Seen("all"),
    "gomemcache": Seen("all", error=True),
    "xmemcached": Seen("none", error=True),
    "php-memcached": Seen("none", error=True),
    "dalli": Seen("all"),
}
"""The first multi-get while a slot accepts connections and does not answer."""
BEHIND_A_PROXY: Final = {
    "pymemcache with one address": Seen("none", error=True),
    "pylibmc of Debian": Seen("before"),
    "gomemcache": Seen("before", error=True),
    "php-memcached": Seen("none"),
}
"""A multi-get through a proxy. `before`: the keys before the first one of the slot."""

Property = Callable[[str, object], None]


@pytest.fixture(scope="module")
def commands(programs: dict[str, libraries.Command]) -> dict[str, libraries.Command]:
    """The programs, and the variants of two of them."""
    single = [programs["pymemcache"][0], str(libraries.PROGRAMS / "with_pymemcache_single.py")]
    return {**programs, "pymemcache with one address": single, "pylibmc of Debian": libraries.debian_pylibmc()}


@contextmanager
def started(commands: dict[str, libraries.Command], library: str, folder: Path) -> Generator[tuple[Slots, Client]]:
    """A client that has stored all keys, during the block."""
    with slots(folder) as found, found.client(library, commands[library]) as client:
        filled(client)
        yield found, client


@contextmanager
def behind_a_proxy(
    commands: dict[str, libraries.Command], library: str, folder: Path
) -> Generator[tuple[Slots, Client]]:
    """A client of a proxy that has stored all keys, during the block."""
    with slots(folder) as found, found.front(library, commands[library]) as client:
        filled(client)
        yield found, client


def prefix(library: str) -> str:
    """The start of the keys of a program."""
    return library.partition(" ")[0]


def assert_seen(result: Result, expected: Seen, held: list[list[int]]) -> None:
    """A multi-get returned what is expected. `held`: the keys of each slot before it."""
    live = sum(map(len, held)) - len(held[BROKEN])
    count = {"all": live, "none": 0, "some": result.succeeded, "before": min(held[BROKEN])}[expected.live]
    assert (result.succeeded, result.errors) == (count, int(expected.error))
    assert result.succeeded <= live


@pytest.mark.parametrize("library", ENDED)
def test_multi_get_while_a_slot_refuses_connections(
    commands: dict[str, libraries.Command], library: str, tmp_path: Path
) -> None:
    with started(commands, library, tmp_path) as (found, client):
        held = found.held(prefix(library))
        found.end()
        assert_seen(client.many("get", KEYS), ENDED[library], held)
        again = ENDED[library] if ENDED[library].error else Seen("all")
        eventually(lambda: _agrees(client, again, held), STEP, "a later multi-get has the keys of the other slots")


def _agrees(client: Client, expected: Seen, held: list[list[int]]) -> bool:
    try:
        assert_seen(client.many("get", KEYS), expected, held)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("library", HANGS)
def test_multi_get_while_a_slot_does_not_answer(
    commands: dict[str, libraries.Command], library: str, tmp_path: Path, record_property: Property
) -> None:
    with started(commands, library, tmp_path) as (found, client):
        held = found.held(prefix(library))
        with found.hanging():
            result = client.many("get", KEYS)
            record_property(library, f"{result.slowest:.2f} s, then {client.many('get', KEYS).slowest:.2f} s")
        assert_seen(result, HANGS[library], held)


def test_pymemcache_reports_keys_as_stored_that_are_not(commands: dict[str, libraries.Command], tmp_path: Path) -> None:
    with started(commands, "pymemcache", tmp_path) as (found, client):
        found.end()
        for command in ("set", "delete"):
            result = client.many(command, KEYS)
            assert (result.succeeded, result.errors) == (KEYS, 0)
        assert found.held("pymemcache") == [[], [], [], []]


def stored(slots: Slots) -> list[int]:
    """The numbers of the keys of pylibmc that a slot holds."""
    return sorted(key for keys in slots.held("pylibmc") for key in keys)


@pytest.mark.parametrize("library", ["pylibmc", "pylibmc of Debian"])
def test_pylibmc_stops_at_the_first_key_of_the_slot(
    commands: dict[str, libraries.Command], library: str, tmp_path: Path
) -> None:
    with started(commands, library, tmp_path) as (found, client):
        slot = next(slot for slot, keys in enumerate(found.held("pylibmc")) if 0 not in keys)
        first = min(found.held("pylibmc")[slot])
        found.end(slot)
        live = stored(found)
        assert client.many("delete", KEYS).errors == 1
        assert stored(found) == [key for key in live if key > first], "later keys are not deleted"
        found.flush()
        assert client.many("set", KEYS).errors == 1
        assert stored(found) == list(range(first)), "later keys are not stored"


@pytest.mark.parametrize("proxy", [False, True])
def test_php_reports_only_the_last_key_of_a_set(
    commands: dict[str, libraries.Command], tmp_path: Path, proxy: bool
) -> None:
    library = "php-memcached"
    with (behind_a_proxy if proxy else started)(commands, library, tmp_path) as (found, client):
        broken = found.held(library)[BROKEN]
        found.end()
        lost = [number for number in range(2, KEYS) if client.many("set", number).errors]
        assert lost == [key + 1 for key in broken if 2 <= key + 1 < KEYS]
        assert client.many("delete", KEYS).succeeded == KEYS - len(broken)


def test_php_waits_for_each_key_of_a_slot_that_does_not_answer(
    commands: dict[str, libraries.Command], tmp_path: Path, record_property: Property
) -> None:
    library = "php-memcached"
    with started(commands, library, tmp_path) as (found, client):
        broken = len(found.held(library)[BROKEN])
        with found.hanging():
            for command in ("set", "delete"):
                result = client.many(command, KEYS)
                record_property(command, f"{KEYS} keys, {broken} of the slot: {result.slowest:.1f} s")
                assert result.slowest >= TIMEOUT * broken


def test_named_php_client_keeps_its_servers() -> None:
    add = "$c = new Memcached('pool'); $c->addServer('a', 1); $c->addServer('b', 1); $n[] = count($c->getServerList());"
    reset = (
        "$c = new Memcached('pool'); $c->resetServerList(); $c->addServer('a', 1); $n[] = count($c->getServerList());"
    )
    (command,) = libraries.php().values()
    assert json.loads(run([command[0], "-r", f"{add} {add} {reset} echo json_encode($n);"])) == [2, 4, 1]


@pytest.mark.parametrize("library", BEHIND_A_PROXY)
def test_multi_get_behind_a_proxy(commands: dict[str, libraries.Command], library: str, tmp_path: Path) -> None:
    with behind_a_proxy(commands, library, tmp_path) as (found, client):
        held = found.held(prefix(library))
        live = sum(map(len, held)) - len(held[BROKEN])
        found.end()
        for _ in range(2):
            assert_seen(client.many("get", KEYS), BEHIND_A_PROXY[library], held)
        assert client.read(KEYS).succeeded == live, "single gets are right"


def test_wheel_of_pylibmc_takes_the_proxy_out_of_use(commands: dict[str, libraries.Command], tmp_path: Path) -> None:
    if not libraries.has_wheel():
        pytest.skip("pip has compiled pylibmc with this machine's libmemcached")
    with behind_a_proxy(commands, "pylibmc", tmp_path) as (found, client):
        found.end()
        client.many("get", KEYS)
        assert client.read(KEYS).succeeded == 0


@pytest.mark.parametrize("library", ["memjs", "dalli"])
def test_binary_protocol_stores_nothing_through_a_proxy(
    commands: dict[str, libraries.Command], library: str, tmp_path: Path
) -> None:
    with slots(tmp_path) as found, found.front(library, commands[library]) as client:
        assert client.store(3).succeeded == 0
