"""The examples of docs/plugin.md are what the program prints at 80 columns, with figures of a cache under load."""

import shlex
from pathlib import Path
from typing import Any

import pytest

from kubectl_memcached.ring.libraries import LIBRARIES
from kubectl_memcached.ring.placements import Server
from support.code_blocks import code_blocks
from unit.plugin.conftest import Run, World
from unit.plugin.samples import PROXIES, TLS, lines, memcached, proxy, stats

PAGE = Path(__file__).parents[3] / "docs/plugin.md"
WIDTH = 80
NOW = 1763718120.0
ITEM = "ME user:7 exp=3496 la=101 cas=9 fetch=yes cls=12 size=965\r\n"
SMALL = {
    "uptime": 182,
    "curr_connections": 8,
    "get_hits": 66566,
    "get_misses": 3974,
    "bytes": 21281696,
    "total_items": 21974,
}
FULL = {
    "uptime": 182,
    "curr_connections": 868,
    "get_hits": 176896,
    "get_misses": 69994,
    "bytes": 54629841,
    "evictions": 88954,
    "total_items": 159994,
}
"""Measured with memcached 1.6.38 and 64 MiB: values of 900 bytes, and of 700 bytes with more keys than fit."""
METRICS = f"""\
memcached_agent_warm {{warm}}
memcached_agent_hit_ratio 0.43
memcached_agent_target_hit_ratio 0.8
memcached_agent_certificate_expiration_timestamp_seconds {NOW + 88.5 * 86400}
"""
SLABS = {
    "items": {
        "items:11:number": 71040,
        "items:11:age": 92,
        "items:11:evicted": 60068,
        "items:11:evicted_time": 92,
        "items:11:outofmemory": 0,
        "items:11:reclaimed": 0,
    },
    "slabs": {"11:chunk_size": 944, "11:total_pages": 64, "11:used_chunks": 71040},
}


KEYS = [f"page:{number}" for number in range(1204)]
MISPLACED = 16


def stored(slot: int) -> str:
    """Lines about the keys of a slot: pymemcache stored most of them, and another client the first ones."""
    pymemcache = next(library for library in LIBRARIES if library.name == "pymemcache")
    place = pymemcache.build([Server(f"sessions-{each}.sessions.shop.svc.cluster.local", 11211) for each in range(3)])
    places = [(place(key.encode()) + (number < MISPLACED)) % 3 for number, key in enumerate(KEYS)]
    return "".join(
        f"ts=1 gid={number} type=item_store key={key} status=stored cmd=set ttl=0 clsid=1 cfd=9 size=1\n"
        for number, (key, held) in enumerate(zip(KEYS, places, strict=True))
        if held == slot
    )


def requested(slot: int) -> str:
    """Lines about requests to a slot."""
    counts = {f"user:{number}": 400 // number for number in range(1, 8) if number % 3 == slot}
    return "".join(
        f"ts=1 gid=1 type=item_get key={key} status=found clsid=1 cfd=9 size=965\n"
        for key, count in counts.items()
        for _ in range(count)
    )


def examples() -> dict[str, str]:
    """Each command line of the page with its output."""
    consoles = code_blocks(PAGE.read_text(), "console")
    return dict(text.removeprefix("$ kubectl memcached ").split("\n", 1) for text in consoles)


def with_texts(cr: dict[str, Any]) -> None:
    """Set the times of the conditions, and the message of Degraded."""
    for condition in cr["status"]["conditions"]:
        condition["lastTransitionTime"] = "2025-11-21T09:39:00Z"
        condition["message"] = "All components are healthy" if condition["type"] == "Degraded" else ""


@pytest.fixture
def cache(world: World, monkeypatch: pytest.MonkeyPatch) -> World:
    """The cache of the page: three slots with TLS, of which one has too little memory."""
    monkeypatch.setattr("time.time", lambda: NOW)
    cr = memcached({"size": 3, "tls": TLS, "monitoring": {}, "rollout": {"warmUp": {}}})
    cr["status"] |= {"readyReplicas": 3}
    with_texts(cr)
    world.use(cr, 3, **{name: lines(values) for name, values in SLABS.items()})
    world.responses["/metrics"] = (200, METRICS.format(warm=1))
    replies = (("EN\r\n", SMALL), ("EN\r\n", FULL), (ITEM, SMALL))
    for slot, (stub, (item, figures)) in enumerate(zip(world.stubs, replies, strict=True)):
        counters = stats(**figures, log_worker_dropped=0, log_watcher_skipped=0)
        logs = {"watch mutations": f"OK\r\n{stored(slot)}", "watch fetchers": f"OK\r\n{requested(slot)}"}
        stub.replies = {**stub.replies, **logs, "me user:7": item, "flush_all": "OK\r\n", "stats": counters}
    return world


@pytest.mark.parametrize("words", examples())
def test_example_is_the_output(words: str, cache: World, run: Run) -> None:
    shown = examples()[words]
    command = words.partition(" ")[0]
    if "front" in words:
        front = proxy(slots=3)
        with_texts(front)
        cache.cr["status"]["servers"] = [f"sessions-{slot}.sessions.shop.svc.cluster.local:11211" for slot in range(3)]
        cache.kubectl.objects[PROXIES] = [front]
    fast = {"flush": ["--rate=6000"], "ring": ["--seconds=1"], "hotkeys": ["--seconds=1"]}.get(command, [])
    printed = run(*shlex.split(words), *fast, text="y\n").output
    assert max(map(len, printed.splitlines())) <= WIDTH
    if command in ("top", "hotkeys"):  # the rates depend on the time between the samples
        assert printed.splitlines()[0].split() == shown.splitlines()[0].split()
    else:
        assert printed == shown
