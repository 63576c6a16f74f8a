"""The rule that changes the number of slots, and the routes."""

from typing import Any

import pytest

from memcached_api.annotations import RING_ANNOTATION
from memcached_api.memcachedproxy.resolved import settings
from memcached_api.memcachedproxy.types import decode_spec
from memcached_operator.memcachedproxy.desired.routes import phase_routes, routes
from memcached_operator.memcachedproxy.references import Slots
from memcached_operator.memcachedproxy.ring import next_ring
from memcached_operator.parts.ring import Phase, Ring, ring_of
from unit.builders import memcachedproxy


def ring(servers: int, name: str = "cache", uid: str = "a") -> Ring:
    """A ring."""
    return Ring(name, uid, servers)


RULE: dict[str, tuple[Ring | None, Ring, bool, Ring]] = {
    "first, before the slots are ready": (None, ring(3), False, ring(3)),
    "equal": (ring(3), ring(3), False, ring(3)),
    "smaller at once": (ring(4), ring(3), False, ring(3)),
    "larger, not ready": (ring(3), ring(4), False, ring(3)),
    "larger, ready": (ring(3), ring(4), True, ring(4)),
    "another Memcached at once": (ring(3, "old"), ring(4), False, ring(4)),
    "a new Memcached of the same name at once": (ring(3, uid="old"), ring(4), False, ring(4)),
}


@pytest.mark.parametrize(("now", "wanted", "ready", "expected"), RULE.values(), ids=RULE.keys())
def test_ring_grows_only_onto_ready_slots(now: Ring | None, wanted: Ring, ready: bool, expected: Ring) -> None:
    assert next_ring(now, wanted, ready=ready) == expected


def test_ring_is_read_as_it_was_written() -> None:
    assert ring_of({"metadata": {"annotations": {RING_ANNOTATION: str(ring(3))}}}) == ring(3)


@pytest.mark.parametrize("text", [None, "", "cache", "cache/a", "cache/a/", "cache/a/x", "cache/a/-1", "/a/3", "c/a/²"])
def test_annotation_of_another_client_is_no_ring(text: Any) -> None:
    assert ring_of({"metadata": {"annotations": {} if text is None else {RING_ANNOTATION: text}}}) is None
    assert ring_of({}) is None


SLOTS = Slots("cache", "cache.test.svc.cluster.local", 11300)


def test_routes_of_the_first_slots() -> None:
    assert routes(SLOTS, 3, settings(decode_spec(memcachedproxy())), 65536) == (
        "settings{ backend_connect_timeout = 0.5, backend_read_timeout = 0.5, backend_retry_waittime = 1, "
        "backend_failure_limit = 1, active_req_limit = 8096, buffer_memory_limit = 65536, tcp_keepalive = true }\n"
        "local main = {}\n"
        'for i = 0, 2 do main[i + 1] = { label = "cache-" .. i, host = "cache-" .. i .. '
        '".cache.test.svc.cluster.local.", port = "11300" } end\n'
        "pools{ main = { backends = main } }\n"
        'routes{ default = route_direct{ child = "main" } }\n'
    )


def test_routes_of_a_phase_have_a_pool_for_each_size() -> None:
    options = settings(decode_spec(memcachedproxy()))
    common, *_ = routes(SLOTS, 3, options, 65536).splitlines()
    server = '{ label = "cache-" .. i, host = "cache-" .. i .. ".cache.test.svc.cluster.local.", port = "11300" }'
    assert phase_routes(SLOTS, 3, 4, Phase.MOVE, options, 65536) == (
        f"{common}\n"
        "local old = {}\n"
        f"for i = 0, 2 do old[i + 1] = {server} end\n"
        "local new = {}\n"
        f"for i = 0, 3 do new[i + 1] = {server} end\n"
        "pools{ old = { backends = old }, new = { backends = new } }\n"
        'routes{ default = route_scale{ child_old = "old", child_new = "new", old = 3, new = 4, phase = "move" } }\n'
    )


TIMEOUTS = {"10ms": "0.01", "1500ms": "1.5", "60000ms": "60", "1s": "1", "60s": "60", "10s": "10"}


@pytest.mark.parametrize(("text", "seconds"), TIMEOUTS.items())
def test_timeouts_are_in_seconds(text: str, seconds: str) -> None:
    spec = decode_spec(memcachedproxy(timeouts={"connect": text, "read": "20ms"}))
    found = routes(SLOTS, 1, settings(spec), 1)
    assert f"backend_connect_timeout = {seconds}, backend_read_timeout = 0.02," in found


def test_size_of_the_routes_does_not_depend_on_the_number_of_slots() -> None:
    found = [len(routes(SLOTS, servers, settings(decode_spec(memcachedproxy())), 1)) for servers in (3, 1000)]
    assert found[1] - found[0] == len("999") - len("2")
    assert found[1] < 1000
