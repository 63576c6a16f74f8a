"""Fuzz: whatever comes in at the ports of admission, the answer is an error, memory and log are bounded, and others are
served."""

import time
from collections.abc import Awaitable, Callable
from functools import partial

from faults.campaigns.port import bodies, floods, heads, slow, strings
from faults.campaigns.port.scene import HEADER, LARGEST, Scene
from faults.case import Case, References
from faults.stage import Stage
from faults.webhook import caller, trusting, webhook

Scenario = Callable[[Scene], Awaitable[None]]

LATE = 5.0
"""Seconds after which the API server gives a review up."""
SOON = 1.0
"""Seconds within which a review is answered beside a scenario that has the machine for itself."""
UNFINISHED = f"{HEADER}Content-Length: {LARGEST}\r\n\r\n".encode() + b" " * (LARGEST - 1000)
TINY_CHUNKS = f"{HEADER}Transfer-Encoding: chunked\r\n\r\n".encode() + b"2\r\n  \r\n" * 9000
LONG_HEAD = heads.BEGIN + b"".join(b"A%d: %s\r\n" % (number, b"b" * 4000) for number in range(7))
SECOND_HEAD = f"{HEADER}Content-Length: 1\r\n\r\n{{POST / HTTP/1.1\r\nA: ".encode()
LARGE_BODY = f"{HEADER}Content-Length: 70000\r\n\r\n".encode()
HALF = b"GET /healthz HTTP/1.1\r\nHost: a\r\nA: "

SCENARIOS: dict[str, Scenario] = {
    "random-bytes": bodies.random_bytes,
    "broken-reviews": bodies.broken_reviews,
    "deep-nesting": bodies.deep_nesting,
    "huge-values": bodies.huge_values,
    "costly-reviews": bodies.costly_reviews,
    "many-faults": bodies.many_faults,
    "content-types": bodies.content_types,
    "encodings": bodies.encodings,
    "methods-and-paths": heads.methods_and_paths,
    "no-http": heads.no_http,
    "slow-handshakes": partial(slow.slow, begin=b"\x16\x03\x01\x02\x00", count=100, within=slow.HANDSHAKE, tls=False),
    "slow-heads": partial(slow.slow, begin=heads.BEGIN + b"A: ", count=100, within=slow.REQUEST),
    "slow-long-heads": partial(slow.slow, begin=LONG_HEAD, count=500, within=slow.REQUEST),
    "slow-bodies": partial(
        slow.slow, begin=f"{HEADER}Content-Length: 1000\r\n\r\n{{".encode(), count=100, within=slow.REQUEST
    ),
    "slow-large-bodies": partial(slow.slow, begin=LARGE_BODY, count=100, within=slow.REQUEST),
    "stalled-large-bodies": partial(slow.slow, begin=LARGE_BODY + b" " * 2**16, count=100, within=slow.REQUEST),
    "slow-second-heads": partial(slow.slow, begin=SECOND_HEAD, count=20, within=slow.REQUEST),
    "idle-connections": partial(slow.idle, count=700, within=slow.IDLE, tls=True),
    "idle-sockets": partial(slow.idle, count=2000, within=slow.HANDSHAKE, tls=False),
    "large-at-once": partial(slow.large_at_once, count=100, data=UNFINISHED),
    "many-large-at-once": partial(slow.large_at_once, count=500, data=UNFINISHED[: 2**20]),
    "tiny-chunks-at-once": partial(slow.large_at_once, count=500, data=TINY_CHUNKS),
}
ALONE: dict[str, Scenario] = {
    "hostile-names": strings.hostile_names,
    "long-strings": strings.long_strings,
    "unread-answers": partial(floods.unread, count=100),
    "endless-heads": heads.endless_heads,
    "no-handshakes": partial(floods.crowd, of=lambda webhook: webhook.port, begin=b""),
    "half-handshakes": partial(floods.crowd, of=lambda webhook: webhook.port, begin=b"\x16\x03\x01\x02\x00"),
    "half-open-probes": partial(floods.crowd, of=lambda webhook: webhook.probes_port, begin=HALF),
    "half-open-metrics": partial(floods.crowd, of=lambda webhook: webhook.metrics_port, begin=HALF),
}
"""Scenarios beside which good reviews are answered within SOON, which they have to show without other cases."""
GATE = (
    "random-bytes",
    "deep-nesting",
    "costly-reviews",
    "content-types",
    "hostile-names",
    "half-open-probes",
    "unread-answers",
    "no-handshakes",
)


async def run(stage: Stage, _: References, scenario: Scenario, soon: float) -> None:
    """One kind of nonsense; before and after, good reviews are answered."""
    async with webhook(stage) as here:
        tls, started = trusting(here.pair.ca), time.monotonic()
        async with caller(tls) as session:
            scene = Scene(stage, here, session, tls, soon)
            await scene.well()
            await scenario(scene)
            await scene.well()
            code = (await here.metrics())["controller_runtime_webhook_panics_total"]
            stage.holds(code == 0, f"{code:g} reviews failed with an internal error")
            stage.holds(not here.failures(), f"admission itself: {here.failures()}")
            stage.holds(len(here.process.began) == 1, "the process was started again")
            strings.check_log(scene, time.monotonic() - started)
    memory, sockets = scene.most, scene.most_sockets
    times = f"{1000 * scene.longest:.0f} ms, large reviews {1000 * scene.longest_large:.0f} ms"
    print(f"{stage.namespace}: at most {memory:.0f} MiB, {sockets:.0f} of them in sockets; {times}")


def cases() -> list[Case]:
    """Each kind of nonsense."""
    return [
        *(_case(name, partial(run, scenario=scenario, soon=LATE)) for name, scenario in SCENARIOS.items()),
        *(_case(name, partial(run, scenario=scenario, soon=SOON), alone=True) for name, scenario in ALONE.items()),
    ]


def _case(name: str, run: Callable[[Stage, References], Awaitable[None]], *, alone: bool = False) -> Case:
    return Case(f"fuzz/port/{name}", run, gate=name in GATE, alone=alone, limit=180)
