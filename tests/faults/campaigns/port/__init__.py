"""Whatever admission receives, its memory and its log are bounded, and other clients are served.

tests/unit/process shows each limit of a port by itself.
"""

import time
from collections.abc import Awaitable, Callable
from functools import partial

from faults.campaigns.port import bodies, floods, slow
from faults.campaigns.port.setup import HEADER, MAX_BODY, Setup
from faults.case import Case, References, in_gate
from faults.sandbox import Sandbox
from faults.webhook import client_context, client_session, webhook

Scenario = Callable[[Setup], Awaitable[None]]

REVIEW_TIMEOUT = 5.0
"""Seconds after which the API server abandons a review."""
QUICK = 1.0
"""Seconds within which a review is answered during a scenario that runs alone."""
UNFINISHED = f"{HEADER}Content-Length: {MAX_BODY}\r\n\r\n".encode() + b" " * (MAX_BODY - 1000)
TINY_CHUNKS = f"{HEADER}Transfer-Encoding: chunked\r\n\r\n".encode() + b"2\r\n  \r\n" * 9000
LARGE_BODY = f"{HEADER}Content-Length: 70000\r\n\r\n".encode()

SCENARIOS: dict[str, Scenario] = {
    "deep-nesting": bodies.deep_nesting,
    "huge-values": bodies.huge_values,
    "costly-reviews": bodies.costly_reviews,
    "many-errors": bodies.many_errors,
    "slow-large-bodies": partial(slow.slow, begin=LARGE_BODY, count=100),
    "stalled-large-bodies": partial(slow.slow, begin=LARGE_BODY + b" " * 2**16, count=100),
    "parallel-large-bodies": partial(slow.parallel_bodies, count=100, data=UNFINISHED),
    "many-parallel-large-bodies": partial(slow.parallel_bodies, count=500, data=UNFINISHED[: 2**20]),
    "parallel-tiny-chunks": partial(slow.parallel_bodies, count=500, data=TINY_CHUNKS),
}
ALONE: dict[str, Scenario] = {
    "unread-responses": partial(floods.unread_responses, count=100),
    "no-handshakes": floods.no_handshakes,
}
"""Scenarios during which valid reviews are answered within QUICK. They run without other cases."""


async def run(sandbox: Sandbox, _: References, scenario: Scenario, limit: float) -> None:
    """One scenario; valid reviews are answered before and after it."""
    async with webhook(sandbox) as admission:
        tls, started = client_context(admission.pair.ca), time.monotonic()
        async with client_session(tls) as session:
            setup = Setup(sandbox, admission, session, tls, limit)
            await setup.check_reviews()
            await scenario(setup)
            await setup.check_reviews()
            code = (await admission.metrics())["controller_runtime_webhook_panics_total"]
            sandbox.check(code == 0, f"{code:g} reviews failed with an internal error")
            sandbox.check(not admission.failures(), f"the admission process failed: {admission.failures()}")
            sandbox.check(len(admission.process.starts) == 1, "the process was restarted")
            setup.check_log(time.monotonic() - started)
    memory, sockets = setup.max_memory, setup.max_sockets
    times = f"{1000 * setup.slowest:.0f} ms, large {1000 * setup.slowest_large:.0f} ms"
    print(f"{sandbox.namespace}: at most {memory:.0f} MiB, {sockets:.0f} MiB of it in sockets; slowest review {times}")


def cases() -> list[Case]:
    """One case per scenario."""
    found = [
        *(_case(name, partial(run, scenario=scenario, limit=REVIEW_TIMEOUT)) for name, scenario in SCENARIOS.items()),
        *(_case(name, partial(run, scenario=scenario, limit=QUICK), alone=True) for name, scenario in ALONE.items()),
    ]
    return in_gate(found, "port/costly-reviews", "port/unread-responses", "port/no-handshakes")


def _case(name: str, run: Callable[[Sandbox, References], Awaitable[None]], *, alone: bool = False) -> Case:
    return Case(f"port/{name}", run, alone=alone, limit=180)
