"""What the watcher costs: the CPU time of memcached and of the agent, in rounds that alternate with and without it."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from math import inf, sqrt
from pathlib import Path
from statistics import mean, stdev
from typing import Final

import msgspec

from cluster.public import releases
from corners.server import Server
from insight.load import Load, Target
from insight.workloads import Keys, Workload, zipf
from support.memcacheds import memcached
from support.waiting import STEP
from unit.agent.processes import running

WORKLOAD: Final = Workload("Zipf 1.08", 16, zipf(1.08, 150_000))
"""About 10 % of its gets are misses."""
ROUNDS: Final = 12
"""Pairs of rounds at each rate."""
FILL: Final = 300_000
"""Gets before the first round."""
LOADS: Final = ((100.0, 1000), (1000.0, 5000), (inf, 40_000))
"""Gets per second, one at a time and at most as fast as memcached replies, and the gets of a round."""
T_DISTRIBUTION: Final = 2.201
"""The 97.5th percentile for ROUNDS - 1 degrees of freedom."""


class Round(msgspec.Struct, frozen=True):
    """CPU times in µs per get, the share of misses, gets per second, and the private memory of the agent in bytes."""

    memcached: float
    agent: float
    misses: float
    rate: float
    memory: int


class Cost(msgspec.Struct, frozen=True):
    """The rounds at one rate, without and with the watcher, in pairs."""

    without: list[Round]
    watched: list[Round]


class Interval(msgspec.Struct, frozen=True):
    """A mean with its confidence interval of 95 %."""

    mean: float
    half: float


def interval(values: Sequence[float]) -> Interval:
    """The confidence interval of the mean of ROUNDS values."""
    return Interval(mean(values), T_DISTRIBUTION * stdev(values) / sqrt(len(values)))


def measured(version: str, port: int) -> list[Cost]:
    """Measure at each rate, on memcached of this version at this port."""
    keys = WORKLOAD.keys(FILL + 2 * ROUNDS * max(gets for _, gets in LOADS))
    with memcached(releases.ensure(version), port, "-m", str(WORKLOAD.memory)) as server, ExitStack() as stack:
        target = Target(port)
        stack.callback(target.close)
        Load(WORKLOAD, keys[:FILL], [target]).run(0, FILL)
        return [_at(server, target, keys[FILL:], *load) for load in LOADS]


def _at(server: Server, target: Target, keys: Keys, rate: float, gets: int) -> Cost:
    """The rounds at this rate, in the order ABBA."""
    load = Load(WORKLOAD, keys[: 2 * ROUNDS * gets], [target])
    load.batch = 1
    without, watched = list[Round](), list[Round]()
    for number in range(2 * ROUNDS):
        target.reset()
        flags, rounds = (["--insight"], watched) if number % 4 in (1, 2) else ([], without)
        first = number * gets
        rounds.append(_round(server, target, partial(load.run, first, first + gets, rate), flags))
    return Cost(without, watched)


def _round(server: Server, target: Target, send: Callable[[], None], flags: Sequence[str]) -> Round:
    """One round, with an agent that has these flags."""
    with running(server.port, *flags, measured=False) as agent:
        agent.wait_for(200, "ok")
        _wait_for_watchers(server, len(flags))
        processes = (server.process.pid, agent.process.pid)
        before, began = [_cpu(pid) for pid in processes], time.monotonic()
        send()
        seconds = time.monotonic() - began
        used = [(_cpu(pid) - earlier) * 1e6 / target.gets for pid, earlier in zip(processes, before, strict=True)]
        misses = 1 - target.hits / target.gets
        return Round(used[0], used[1], misses, target.gets / seconds, agent.private_bytes())


def _wait_for_watchers(server: Server, number: int) -> None:
    """Wait until memcached has so many watchers. Raises OSError if it does not."""
    client, deadline = server.connect(), time.monotonic() + STEP
    while int(client.stats()["log_watchers"]) != number:
        if time.monotonic() > deadline:
            raise OSError(f"memcached does not have {number} watchers")
        time.sleep(0.05)
    client.close()


def _cpu(pid: int) -> float:
    """The CPU time of a process in seconds, from the scheduler's nanoseconds of each thread."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9
