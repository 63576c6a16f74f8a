"""The cost of each phase, as a share of a plain proxy in the same run: printed, and not compared with a limit."""

import time
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from corners.client import Client
from corners.server import Server
from memcached_operator.parts.ring import MOVING, Phase
from support.cpu import cpu_time
from support.scaling.processes import memcacheds, phased, plain, proxy

KEYS: Final = 1000
PIPELINES: Final = (1, 20)
"""Requests that a client sends at once."""
ROUNDS: Final = 10
"""All proxies take turns, so that a load of the machine is that of all."""
OLD, NEW = 3, 4


class Cost(NamedTuple):
    """Seconds for all requests of a round: of the clock, and of the proxy's processor."""

    seconds: float
    processor: float


class Request(NamedTuple):
    """Templates of a request and of the end of its reply, with the number of the key."""

    text: bytes
    end: bytes


READ: Final = Request(b"mg key-%(number)d v\r\n", b"\r\n%(number)010d\r\n")
STORE: Final = Request(b"ms key-%(number)d 10 O%(number)d\r\n%(number)010d\r\n", b"HD O%(number)d\r\n")


def send(client: Client, request: Request, pipeline: int) -> None:
    """Send a request for each key, as many as `pipeline` at once."""
    for start in range(0, KEYS, pipeline):
        numbers = range(start, start + pipeline)
        reply = client.request(
            b"".join(request.text % {b"number": number} for number in numbers), request.end % {b"number": numbers[-1]}
        )
        assert b"ERROR" not in reply
        assert b"EN\r\n" not in reply


def cost(front: Server, request: Request, pipeline: int) -> Cost:
    """The cost of a proxy for ROUNDS requests of each key."""
    with closing(front.connect()) as client:
        began, used = time.perf_counter(), cpu_time(front.process.pid)
        for _ in range(ROUNDS):
            send(client, request, pipeline)
        return Cost(time.perf_counter() - began, cpu_time(front.process.pid) - used)


@pytest.fixture(scope="module")
def proxies(root: Path) -> Generator[dict[str, Server]]:
    """A proxy for the old ring, and one in each phase, with the same servers."""
    with memcacheds(root, NEW) as servers, ExitStack() as stack:
        ports = [each.port for each in servers]
        texts = {"plain": plain(ports, OLD), **{phase.value: phased(ports, OLD, NEW, phase) for phase in MOVING}}
        yield {name: stack.enter_context(proxy(root, text)) for name, text in texts.items()}


CASES: Final = {
    "reads of items at the old place": (READ, "plain", (Phase.PREPARE, Phase.MOVE)),
    "reads of items at the new place": (READ, Phase.FINISH, (Phase.MOVE, Phase.FINISH)),
    "writes": (STORE, "plain", (Phase.PREPARE,)),
    "writes of moved items": (STORE, Phase.FINISH, (Phase.MOVE, Phase.FINISH)),
}
"""The request, the proxy that stores the items, and the proxies that are measured."""


@pytest.mark.nightly
@pytest.mark.parametrize("pipeline", PIPELINES)
@pytest.mark.parametrize(("request_of", "storing", "measured"), CASES.values(), ids=CASES)
def test_cost_of_each_phase(
    request_of: Request,
    storing: str,
    measured: tuple[str, ...],
    pipeline: int,
    proxies: dict[str, Server],
    record_property: Callable[[str, object], None],
) -> None:
    totals = {name: Cost(0, 0) for name in ("base", *measured)}
    for _ in range(ROUNDS):
        for name in totals:
            # Items at the place of the plain proxy for it, and at that of the phase for the others.
            with closing(proxies["plain" if name == "base" else storing].connect()) as client:
                send(client, STORE, max(PIPELINES))
            found = cost(proxies["plain" if name == "base" else name], request_of, pipeline)
            totals[name] = Cost(totals[name].seconds + found.seconds, totals[name].processor + found.processor)
    base = totals["base"]
    for name in measured:
        ratio = base.seconds / totals[name].seconds
        record_property(f"throughput in {name}", f"{ratio:.2f} of plain")
        micros = [1e6 * each.processor / (KEYS * ROUNDS**2) for each in (totals[name], base)]
        record_property(f"processor in {name}", f"{micros[0]:.1f} µs, plain {micros[1]:.1f} µs")
    assert base.seconds > 0
