"""The cost of each phase, as a share of a plain proxy in the same run: printed, and not compared with a limit."""

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from corners.client import Client
from corners.server import Server
from memcached_operator.parts.ring import MOVING
from support.cpu import cpu_time
from support.scaling.processes import memcacheds, phased, plain, proxy

KEYS: Final = 1000
PIPELINE: Final = 20
"""Requests that a client sends at once."""
ROUNDS: Final = 5
"""All proxies take turns, so that a load of the machine is that of all."""
OLD, NEW = 3, 4

Request = Callable[[int], bytes]


class Cost(NamedTuple):
    """Seconds for all requests of a round: of the clock, and of the proxy's processor."""

    seconds: float
    processor: float


def read(number: int) -> bytes:
    """A read."""
    return b"mg key-%d v\r\n" % number


def store(number: int) -> bytes:
    """A write."""
    return b"ms key-%d 10\r\n0123456789\r\n" % number


def send(client: Client, request: Request) -> None:
    """Send a request for each key, PIPELINE at once."""
    for start in range(0, KEYS, PIPELINE):
        batch = b"".join(request(number) for number in range(start, start + PIPELINE))
        reply = client.request(batch + b"mn\r\n", b"MN\r\n")
        assert b"ERROR" not in reply
        assert b"EN\r\n" not in reply


def cost(front: Server, request: Request) -> Cost:
    """The cost of a proxy for ROUNDS requests of each key."""
    with closing(front.connect()) as client:
        began, used = time.perf_counter(), cpu_time(front.process.pid)
        for _ in range(ROUNDS):
            send(client, request)
        return Cost(time.perf_counter() - began, cpu_time(front.process.pid) - used)


@pytest.fixture(scope="module")
def proxies(root: Path) -> Generator[dict[str, Server]]:
    """A proxy for the old ring, and one in each phase, with the same servers."""
    with memcacheds(root, NEW) as servers, ExitStack() as stack:
        ports = [each.port for each in servers]
        texts = {"plain": plain(ports, OLD), **{phase.value: phased(ports, OLD, NEW, phase) for phase in MOVING}}
        yield {name: stack.enter_context(proxy(root, text)) for name, text in texts.items()}


CASES: Final = {
    "reads of items at the old place": (read, "plain", ("prepare", "move")),
    "reads of items at the new place": (read, "finish", ("move", "finish")),
    "writes": (store, "plain", ("prepare",)),
    "writes of moved items": (store, "finish", ("move", "finish")),
}
"""The request, the proxy that stores the items, and the proxies that are measured."""


@pytest.mark.nightly
@pytest.mark.parametrize(("request_of", "storing", "measured"), CASES.values(), ids=CASES)
def test_cost_of_each_phase(
    request_of: Request,
    storing: str,
    measured: tuple[str, ...],
    proxies: dict[str, Server],
    record_property: Callable[[str, object], None],
) -> None:
    totals = {name: Cost(0, 0) for name in ("base", *measured)}
    for _ in range(ROUNDS):
        for name in totals:
            # Items at the place of the plain proxy for it, and at that of the phase for the others.
            with closing(proxies["plain" if name == "base" else storing].connect()) as client:
                send(client, store)
            found = cost(proxies["plain" if name == "base" else name], request_of)
            totals[name] = Cost(totals[name].seconds + found.seconds, totals[name].processor + found.processor)
    base = totals["base"]
    for name in measured:
        ratio = base.seconds / totals[name].seconds
        record_property(f"throughput in {name}", f"{ratio:.2f} of plain")
        micros = [1e6 * each.processor / (KEYS * ROUNDS**2) for each in (totals[name], base)]
        record_property(f"processor in {name}", f"{micros[0]:.1f} µs, plain {micros[1]:.1f} µs")
    assert base.seconds > 0
