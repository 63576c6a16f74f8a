"""Agents that watch a real memcached, and what they report."""

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager, suppress
from typing import Final

from corners.server import Server
from unit.agent.processes import Agent, running
from unit.agent.samples import samples

MEMORY: Final = ("-m", "8")
SIZE: Final = 4000
FITTING: Final = 1700
"""Bytes of a value, and about how many of them fit."""
SECONDS: Final = 120.0
"""Enough for a busy machine and the time between two attempts to watch."""


def store(server: Server, keys: Iterable[int]) -> None:
    """Store items. The keys have characters that memcached encodes for watchers."""
    client = server.connect()
    client.send_quiet([b"".join(map(request, keys))])  # in one piece: the kernel delays many small ones
    client.close()


def request(key: int) -> bytes:
    """The request that stores an item."""
    return b"ms %%k/%d\xff %d q\r\n%b\r\n" % (key, SIZE, b"x" * SIZE)


def stat(server: Server, name: str) -> int:
    """A counter of memcached."""
    client = server.connect()
    found = client.stats()[name]
    client.close()
    return int(found)


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until a condition is true."""
    deadline = time.monotonic() + SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def until_watched(server: Server, number: int = 1) -> None:
    """Wait until memcached has so many watchers."""
    wait_until(lambda: stat(server, "log_watchers") == number)


def until_quality(agent: Agent, quality: str) -> None:
    """Wait until the last window has this quality."""
    agent.wait_for(200, f'memcached_agent_insight_quality{{quality="{quality}"}} 1', "/metrics", SECONDS)


def metrics(agent: Agent) -> str:
    """The metrics of an agent. Asserts that it serves them."""
    with suppress(ConnectionError):
        return agent.get()[1]
    raise AssertionError("the agent does not respond")


def predictions(text: str) -> dict[str, float]:
    """The predicted hit ratios, by multiple of the memory."""
    return {
        dict(labels)["memory"]: ratio
        for (name, labels), ratio in samples(text).items()
        if name == "memcached_agent_predicted_hit_ratio"
    }


@contextmanager
def watching(port: int, *arguments: str) -> Generator[Agent]:
    """An agent during the block, whose windows take seconds. Asserts that it runs until the test ends it."""
    with running(port, "--insight", *arguments, module="integration.quick_agent") as agent:
        yield agent
        if agent.process.poll() is None:
            ended(agent)


def ended(agent: Agent) -> str:
    """End the agent, and return its log. Asserts that there was no internal error."""
    code, log = agent.end(seconds=SECONDS)
    assert code == 0, log
    assert "Traceback" not in log
    return log
