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
from memcached_agent.memcached.stats import Statistics, statistics
from memcached_agent.metrics.families import families
from memcached_agent.pod.record import seen
from memcached_operator.memcached.alerts.caches import GETS
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
OTHERS: Final = {
    "set": "set other 0 0 1\r\na",
    "delete": "delete missing",
    "incr": "incr missing 1",
    "me": "me key",
}
"""Commands that are neither a hit nor a miss."""
STATS: Final = ("stats", "stats settings", "stats items", "stats slabs")


def read(client: Client) -> tuple[Statistics, str]:
    """The statistics as the agent reads them, and the reply to `stats`."""
    replies = [client.request(f"{each}\r\n".encode(), b"END\r\n") for each in STATS]
    return statistics(*replies), replies[0].decode()


def of_rules(before: Statistics, after: Statistics) -> tuple[float, float]:
    """The hits and the gets between two samples that the expressions of the rules select."""
    match = re.fullmatch(r'command=~"(.+)"', GETS)
    assert match
    hits = gets = 0.0
    for sign, found in ((-1, before), (1, after)):
        commands = next(each for each in families(found) if each.metric.name == "memcached_commands_total")
        for labels, value in commands.samples:
            if re.fullmatch(match[1], dict(labels)["command"]):
                gets += sign * value
                hits += sign * value * (dict(labels)["status"] == "hit")
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
    assert (seen(after.general).hits, seen(after.general).misses) == (hits, gets - hits)
    assert hit_ratio(counters(before), counters(after)) == hits / 10
    found = rates("pod", parse_stats(first), parse_stats(last), 1.0)
    assert (found.gets, found.hit_ratio) == (gets, hits / gets if gets else None)
    if "T300" in command or command.startswith("gat"):
        assert counters(after).touches == HITS, "hits that `stats items` leaves out"
        assert not any(name.startswith("hits_to_") and value != "0" for name, value in after.items[1].items())
