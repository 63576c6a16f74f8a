"""The agent, the plugin and the rules count the same hits, for each command that reads, with real memcacheds."""

import re
from pathlib import Path
from typing import Final

import pytest

from cluster.public import releases
from corners.client import Client
from kubectl_memcached.model.statistics.rates import rates
from kubectl_memcached.model.statistics.replies import parse_stats
from memcached_agent.insight.counters import counters
from memcached_agent.insight.curve import hit_ratio
from memcached_agent.memcached.stats import Statistics, items_memory, statistics
from memcached_agent.metrics.exposition import Labels
from memcached_agent.metrics.families import families
from memcached_agent.pod.record import seen
from memcached_operator.memcached.alerts.caches import GETS, LOST
from support.kube import eventually
from support.memcacheds import memcached, memcached_root
from support.ports import free_port

HITS: Final = 9
"""Of ten requests."""
COMMANDS: Final = {
    **{name: f"{name} KEY" for name in ("get", "gets")},
    **{name: f"{name} 300 KEY" for name in ("gat", "gats")},
    "touch": "touch KEY 300",
    **{f"mg {flags}": f"mg KEY {flags}" for flags in ("v", "v t", "v T300", "T300")},
}
OTHERS: Final = {"set": "set other 0 0 1\r\na", "delete": "delete missing", "incr": "incr missing 1", "me": "me key"}
"""Commands that are neither a hit nor a miss."""
VALUE: Final = bytes(10240)
STORED: Final = 12_000
"""Items, almost twice as many as fit on the disk."""
STATS: Final = ("stats", "stats settings", "stats items", "stats slabs")


def read(client: Client) -> tuple[Statistics, str]:
    """The statistics as the agent reads them, and the reply to `stats`."""
    replies = [client.request(f"{each}\r\n".encode(), b"END\r\n") for each in STATS]
    return statistics(*replies), replies[0].decode()


def by_name(found: Statistics) -> dict[str, list[tuple[Labels, float]]]:
    """The samples of each metric."""
    return {each.metric.name: list(each.samples) for each in families(found)}


def of_rules(before: Statistics, after: Statistics) -> tuple[float, float]:
    """The hits and the gets between two samples that the expressions of the rules select."""
    match = re.fullmatch(r'command=~"(.+)"', GETS)
    assert match
    hits = gets = 0.0
    for sign, found in ((-1, before), (1, after)):
        samples = by_name(found)
        for labels, value in samples["memcached_commands_total"]:
            if re.fullmatch(match[1], dict(labels)["command"]):
                gets += sign * value
                hits += sign * value * (dict(labels)["status"] == "hit")
        hits -= sign * sum(value for _, value in samples[LOST])
    return hits, gets


@pytest.fixture(
    scope="module",
    params=[
        *(pytest.param(version, marks=pytest.mark.nightly) for version in releases.VERSIONS[:-1]),
        releases.VERSIONS[-1],
    ],
)
def root(request: pytest.FixtureRequest) -> Path:
    """The root directory of each release, not only of those of the gate."""
    return memcached_root(request.param)


@pytest.mark.parametrize("command", [*COMMANDS, *OTHERS])
def test_hits_of_a_command(root: Path, command: str) -> None:
    reads = command in COMMANDS
    with memcached(root, free_port()) as live:
        client = live.connect()
        assert client.request(b"set key 0 0 1\r\na\r\n") == b"STORED\r\n"
        (before, first) = read(client)
        for number in range(10):
            line = COMMANDS[command].replace("KEY", "key" if number < HITS else "missing") if reads else OTHERS[command]
            client.request(f"{line}\r\nmn\r\n".encode(), b"MN\r\n")
        (after, last) = read(client)
        client.close()
    hits, gets = (HITS, 10) if reads else (0, 0)
    assert of_rules(before, after) == (hits, gets)
    counted = seen(after.general).gets
    assert (counted.hits, counted.misses) == (hits, gets - hits)
    assert hit_ratio(counters(before), counters(after)) == hits / 10
    found = rates("pod", parse_stats(first), parse_stats(last), 1.0)
    assert (found.gets, found.hit_ratio) == (gets, hits / gets if gets else None)
    if "T300" in command or command.startswith("gat"):
        assert counters(after).touches == HITS, "hits that `stats items` leaves out"
        assert not any(name.startswith("hits_to_") and value != "0" for name, value in after.items[1].items())


def test_hits_of_items_on_a_disk(root: Path, items: str) -> None:
    """memcached counts a get as a hit although its item has left the disk. Our ratio is that of the client."""
    storage = f"ext_page_size=8,ext_wbuf_size=2,ext_item_age=0,ext_path={items}/file:64m"
    with memcached(root, free_port(), "-o", storage) as live:
        client = live.connect()
        client.send_quiet(b"ms %d %d q\r\n%b\r\n" % (key, len(VALUE), VALUE) for key in range(STORED))
        eventually(lambda: client.stats()["extstore_page_evictions"] != "0", 60, "items have left the disk")
        before, first = read(client)
        hits = sum(client.request(b"mg %d\r\n" % key) == b"HD\r\n" for key in range(STORED))
        got = sum(len(client.request(b"mg %d v\r\nmn\r\n" % key, b"MN\r\n")) > len(VALUE) for key in range(STORED))
        after, last = read(client)
        client.close()
    assert 0 < got < hits, "the headers of items that have left the disk are still in memory"
    counted = seen(after.general).gets.since(seen(before.general).gets)
    assert (counted.hits, counted.total, counted.lost) == (hits + got, 2 * STORED, hits - got)
    assert hit_ratio(counters(before), counters(after)) == (hits + got) / 2 / STORED
    assert of_rules(before, after) == (hits + got, 2 * STORED)
    assert 0 < items_memory(before) <= 2**26 < int(before.general["bytes"]), "most of the bytes are on the disk"
    found = rates("pod", parse_stats(first), parse_stats(last), 1.0)
    assert (found.gets, found.hit_ratio) == (2 * STORED, (hits + got) / 2 / STORED)
