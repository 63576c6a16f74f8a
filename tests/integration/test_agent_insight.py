"""The agent watches evictions of real memcached processes of the oldest and the newest tested release."""

from pathlib import Path

from integration.relay import relay
from integration.watch import Watch
from integration.watching import FITTING, MEMORY, ended, metrics, request, store, until_quality, wait_until, watching
from support.memcacheds import memcached
from support.ports import free_port
from unit.agent.samples import value

BATCH = 100
"""Items of which memcached buffers all lines."""


def test_ghosts_have_the_keys_of_both_kinds_of_lines(root: Path) -> None:
    """A loop over twice the items that fit has no hits, and would have only hits with more than twice the memory."""
    with memcached(root, free_port(), *MEMORY) as full:
        store(full, range(2 * FITTING))
        watch = Watch(full.port)
        client = full.connect()
        keys = [*range(2 * FITTING)] * 5
        for first in range(0, len(keys), BATCH):
            batch = keys[first : first + BATCH]
            gets_and_sets = b"".join(b"mg %%k/%d\xff q\r\n%b" % (key, request(key)) for key in batch)
            assert client.request(gets_and_sets + b"mn\r\n", b"MN\r\n") == b"MN\r\n"
            wait_until(lambda first=first: watch.window.evictions >= first)  # memcached would drop lines of a burst
        client.close()
        result = watch.result()
    assert (result.quality, result.hit_ratio) == ("good", 0)
    found = {point.memory: point.hit_ratio for point in result.larger}
    assert found[1.25] == found[1.5] == 0
    assert found[4.0] > 0.95


def test_memcached_without_watchers(root: Path) -> None:
    with (
        memcached(root, free_port(), "--disable-watch") as live,
        relay(live.port) as between,
        watching(between.port) as agent,
    ):
        wait_until(lambda: between.watchers > 1)
        until_quality(agent, "unavailable")
        assert value(metrics(agent), "memcached_up") == 1
        assert agent.get("/healthz") == (200, "ok\n")
        assert "does not let the agent watch: 'CLIENT_ERROR" in ended(agent)
