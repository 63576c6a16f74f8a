"""Fuzz: whatever comes in at the webhook's port, the answer is an error, memory is bounded, and others are served."""

import asyncio
import gzip
import json
import random
import ssl
import time
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import aiohttp

from faults.case import Case, References
from faults.proxy import HOST
from faults.stage import FailedError, Stage, until
from faults.webhook import JSON, KINDS, MUTATE, PATHS, VALIDATE, Webhook, asked, caller, review, sent, trusting, webhook
from memcached_api.memcached import MEMCACHED
from memcached_api.values import child
from memcached_operator.engine.resource import Object
from memcached_webhooks.admission import path_of

SEED = 12
LARGEST = 4 * 2**20
"""Bytes of a body that is read (memcached_webhooks.protocol.LARGEST_BODY)."""
MEMORY = 192.0
"""MiB that the process may have at any time: it may use 256 (config/webhook/webhook.yaml)."""
SOON = 5.0
"""Seconds after which the API server gives a review up."""
MOST_WORK = 2.0
"""Seconds of CPU for one review, whatever is in it; on an idle machine that is how long all others wait."""
SLACK = 20.0
"""Seconds that a busy machine may add to a time-out."""
HANDSHAKE, REQUEST, IDLE = 10.0, 15.0, 105.0
"""Seconds after which who sends nothing, or next to nothing, is dropped; 5 of them to hear of it."""
GOOD: Object = {"metadata": {"name": "cache"}, "spec": {"size": 1, "image": "example.com/app:1"}}
PATH = path_of(VALIDATE, MEMCACHED)
ERRORS = (400, 404, 405, 408, 411, 413, 414, 415, 417, 431, 501, 503, 505)
"""Codes that are not our fault, and allow nothing."""


@dataclass
class Scene:
    """A process, and a client of it."""

    stage: Stage
    webhook: Webhook
    session: aiohttp.ClientSession
    tls: ssl.SSLContext
    most: float = 0.0

    async def well(self) -> None:
        """A good review is answered in time, a bad one refused, and memory is bounded."""
        started = time.monotonic()
        for kind in KINDS:
            for verb in (MUTATE, VALIDATE):
                code, response = await asked(self.session, self.webhook.url, verb, kind, review(kind, GOOD))
                self.stage.holds(code == 200 and response["allowed"], f"a good review gets {code} {response}")
        bad = review(MEMCACHED, {**GOOD, "spec": {"size": 0}})
        code, response = await asked(self.session, self.webhook.url, VALIDATE, MEMCACHED, bad)
        self.stage.holds(code == 200 and not response["allowed"], f"a bad object gets {code} {response}")
        taken = time.monotonic() - started
        self.stage.holds(taken < SOON, f"good reviews take {taken:.1f} s")
        self.measured()

    def measured(self) -> None:
        """Memory is bounded."""
        self.most = max(self.most, self.webhook.rss())
        self.stage.holds(self.most < MEMORY, f"the process has {self.most:.0f} MiB")

    async def refused(self, data: bytes, path: str = PATH, **headers: str) -> None:
        """What is sent is answered with an error, or a refusal; or the connection is cut."""
        given = {name.replace("_", "-"): text for name, text in headers.items()}
        try:
            code, response = await sent(self.session, self.webhook.url, path, data, {**JSON, **given})
        except aiohttp.ClientError:
            return
        if code == 200:
            self.stage.holds(not response["allowed"], f"allowed: {data[:200]!r}")
        else:
            self.stage.holds(code in ERRORS, f"{code} {response} for {data[:200]!r}")

    @asynccontextmanager
    async def line(self, *, tls: bool = True) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection of one's own."""
        context, name = (self.tls, HOST) if tls else (None, None)
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.webhook.port, ssl=context, server_hostname=name
        )
        try:
            yield reader, writer
        finally:
            writer.transport.abort()

    async def said(self, data: bytes, *, tls: bool = True) -> bytes:
        """What the process says to some bytes, until it hangs up or a second of silence."""
        found = b""
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError):
            async with self.line(tls=tls) as (reader, writer):
                writer.write(data)
                with suppress(ConnectionError):
                    await writer.drain()
                while chunk := await asyncio.wait_for(reader.read(65536), 1):
                    found += chunk
        return found

    async def unanswered(self, data: bytes, *, tls: bool = True) -> None:
        """Some bytes allow nothing."""
        found = await self.said(data, tls=tls)
        self.stage.holds(b'"allowed":true' not in found, f"allowed: {data[:200]!r}")
        self.stage.holds(b" 500 " not in found[:20], f"{found[:100]!r} for {data[:200]!r}")


def _bytes(**fields: object) -> bytes:
    """A review of the good object, with other fields in its spec."""
    return json.dumps(review(MEMCACHED, {**GOOD, "spec": {"size": 0, **fields}})).encode()


async def random_bytes(scene: Scene) -> None:
    """Bodies of chance."""
    dice = random.Random(SEED)  # noqa: S311 - the same ones each time
    for _ in range(500):
        await scene.refused(dice.randbytes(dice.randrange(2000)), dice.choice(PATHS))


async def broken_reviews(scene: Scene) -> None:
    """Reviews of a bad object with bytes changed, lost, doubled and put in."""
    dice = random.Random(SEED)  # noqa: S311 - the same ones each time
    good = _bytes()
    for _ in range(1000):
        data = bytearray(good)
        for _ in range(dice.randrange(1, 4)):
            at = dice.randrange(len(data))
            piece = dice.choice((b"", dice.randbytes(1), data[at : at + 9] * 2, b'"', b"{", b"null", b"\xff"))
            data[at : at + dice.randrange(3)] = piece
        code, response = await sent(scene.session, scene.webhook.url, PATH, bytes(data))
        scene.stage.holds(code in (200, *ERRORS), f"{code} {response} for {bytes(data)!r}")
        if code == 200 and response["allowed"]:
            _still_a_good_one(bytes(data))


def _still_a_good_one(data: bytes) -> None:
    """What was allowed is a review of an object that may be allowed. Raises FailedError where it is not."""
    request = child(json.loads(data.decode(errors="replace")), "request")
    judged = child(request, "operation") in ("CREATE", "UPDATE") and not child(request, "subResource")
    if judged and child(request, "object", "spec", "size") in (0, "0"):
        raise FailedError(f"allowed: {data!r}")


def _nested() -> Iterator[bytes]:
    for depth in (100, 900, 1100, 10_000, 100_000, 2_000_000):
        for opened, closed in ((b"[", b"]"), (b'{"a":', b"}")):
            if depth * (len(opened) + len(closed)) > LARGEST:
                continue
            value = opened * depth + b"1" + closed * depth
            yield opened * depth
            yield value
            yield _bytes(cache="DEEP").replace(b'"DEEP"', value)
            yield _bytes(unknown="DEEP").replace(b'"DEEP"', value)


async def deep_nesting(scene: Scene) -> None:
    """Lists in lists and objects in objects, up to two million deep."""
    for data in _nested():
        await scene.refused(data)
        scene.measured()


async def huge_values(scene: Scene) -> None:
    """Texts, numbers, lists and maps as large as a body may be, and beyond."""
    text = "x" * (LARGEST - 10_000)
    many = [{"name": "="}] * 150_000
    values: tuple[Object, ...] = (
        *({name: text} for name in ("image", "imagePullPolicy", "size", "unknown")),
        {"cache": {"memory": text}},
        {"cache": {"memory": "9" * 3_000_000}},
        {"imagePullSecrets": [{"name": text}]},
        {"imagePullSecrets": [{}] * 1_000_000},
        {"imagePullSecrets": many},
        {"resources": {"limits": {text: 1}}},
        {"resources": {"limits": {f"bad-{number}": -1 for number in range(150_000)}}},
    )
    for fields in values:
        used = scene.webhook.cpu()
        await scene.refused(_bytes(**fields))
        used = scene.webhook.cpu() - used
        scene.stage.holds(used < MOST_WORK, f"{list(fields)} takes {used:.1f} s of CPU")
        scene.measured()
    for number in ("9" * 4000, "9" * 5000, "-" + "9" * 3_000_000, "1e400", "1" + "0" * 400, "0." + "1" * 1_000_000):
        for field in ("size", "cache", "unknown"):
            await scene.refused(_bytes(**{field: "NUMBER"}).replace(b'"NUMBER"', number.encode()))
    await scene.refused(_bytes(unknown="x" * LARGEST))
    await scene.refused(b" " * (LARGEST + 1))
    scene.measured()


async def many_faults(scene: Scene) -> None:
    """Objects of three megabytes, as many faults as fit in: an answer in time, and of a size one can read."""
    kind = KINDS[1]
    specs: tuple[Object, ...] = (
        {"image": "a", "ports": [{"port": 0, "nodePort": 1, "name": "="}] * 60_000},
        {"image": "a", "envs": [{"name": "=", "valueFrom": {}}] * 80_000},
        {"image": "a", "resources": {"limits": {f"bad-{number}": -1 for number in range(150_000)}}},
    )
    for spec in specs:
        used = scene.webhook.cpu()
        body = json.dumps(review(kind, {"metadata": {"name": "app"}, "spec": spec})).encode()
        async with scene.session.post(scene.webhook.url + path_of(VALIDATE, kind), data=body, headers=JSON) as answer:
            payload = await answer.read()
        used = scene.webhook.cpu() - used
        scene.stage.holds(b'"allowed":false' in payload, f"not refused: {payload[:200]!r}")
        scene.stage.holds(used < MOST_WORK, f"the answer takes {used:.1f} s of CPU")
        scene.stage.holds(len(payload) < 2**20, f"the answer has {len(payload)} bytes")
        scene.measured()


TYPES = (
    "text/plain",
    "application/xml",
    "application/yaml",
    "application/jsonp",
    "application/json/x",
    "application/x-www-form-urlencoded",
    "application/vnd.kubernetes.protobuf",
    "multipart/form-data; boundary=x",
    "json",
    "/",
    "*/*",
    "",
)


async def content_types(scene: Scene) -> None:
    """A good review under another name is not even looked at."""
    good = json.dumps(review(MEMCACHED, GOOD)).encode()
    for kind in TYPES:
        code, response = await sent(scene.session, scene.webhook.url, PATH, good, {"Content-Type": kind})
        scene.stage.holds(code == 415, f"{code} {response} for {kind}")


async def encodings(scene: Scene) -> None:
    """Compressed bodies, and those that become a thousand times as large."""
    bomb = b" " * (256 * 2**20)
    for name, data in (
        ("gzip", gzip.compress(bomb)),
        ("deflate", zlib.compress(bomb)),
        ("gzip", gzip.compress(_bytes())[:-20]),
        ("gzip", b"no gzip"),
        ("br", _bytes()),
        ("unknown", _bytes()),
        ("gzip, gzip", gzip.compress(gzip.compress(bomb))),
    ):
        await scene.refused(data, Content_Encoding=name)
        scene.measured()


async def methods_and_paths(scene: Scene) -> None:
    """Another method, or another path."""
    good = json.dumps(review(MEMCACHED, GOOD)).encode()
    for method in ("GET", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "BREW"):
        async with scene.session.request(method, scene.webhook.url + PATH, data=good, headers=JSON) as answer:
            text = await answer.text()
            scene.stage.holds(answer.status in ERRORS and "allowed" not in text, f"{answer.status} for {method}")
    for path in (
        "/",
        "/validate",
        f"{PATH}/",
        f"/{PATH}",
        f"{PATH}%00",
        f"{PATH}/../{PATH}",
        "/%2e%2e/",
        "/" + "a" * 8000,
    ):
        await scene.refused(good, path)


BEGIN = b"POST / HTTP/1.1\r\nHost: a\r\n"
REQUESTS = (
    b"GET\r\n\r\n",
    b"\r\n" * 1000,
    b"\x00" * 5000,
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    b"POST / HTTP/9.9\r\n\r\n",
    BEGIN + b"Content-Length: -1\r\n\r\n",
    BEGIN + b"Content-Length: 9999999999999999999999\r\n\r\n",
    BEGIN + b"Transfer-Encoding: chunked\r\n\r\nZZ\r\n",
    BEGIN + b"A: b\r\n" * 100_000 + b"\r\n",
    BEGIN + b"A: " + b"b" * 2**20 + b"\r\n\r\n",
    b"POST /" + b"a" * 2**20 + b" HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01" * 3000,
)


async def no_http(scene: Scene) -> None:
    """What is no HTTP, or nearly so; and what is no TLS."""
    smuggled = f"POST {PATH} HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n".encode()
    good = json.dumps(review(MEMCACHED, GOOD)).encode()
    both = b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n"
    twice = b"Content-Length: 4\r\nContent-Length: %d\r\n\r\n" % len(good)
    for data in (*REQUESTS, smuggled + both + good, smuggled + twice + good):
        await scene.unanswered(data)
        scene.measured()
    for data in (*REQUESTS, b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100):
        await scene.unanswered(data, tls=False)
    dice = random.Random(SEED)  # noqa: S311 - the same ones each time
    for _ in range(50):
        await scene.unanswered(dice.randbytes(500))
        await scene.unanswered(dice.randbytes(500), tls=False)


HEADER = f"POST {PATH} HTTP/1.1\r\nHost: {HOST}\r\nContent-Type: application/json\r\n"


async def slow(scene: Scene, begin: bytes, count: int, within: float, *, tls: bool = True) -> None:
    """So many send the beginning of something, and then a byte per second: they are dropped, and others served."""
    async with AsyncExitStack() as stack:
        lines: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
        for _ in range(count):
            lines.append(await stack.enter_async_context(scene.line(tls=tls)))
            lines[-1][1].write(begin)
        ended = asyncio.gather(*(_dripped(reader, writer) for reader, writer in lines))
        began = time.monotonic()
        try:
            while not ended.done() and time.monotonic() < began + within + SLACK:
                await scene.well()
                await asyncio.sleep(1)
            scene.stage.holds(ended.done(), f"somebody who sends next to nothing is still there after {within:g} s")
            scene.stage.holds(not any(b'"allowed":true' in found for found in await ended), "allowed")
        finally:
            ended.cancel()
            await asyncio.gather(ended, return_exceptions=True)


async def _dripped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bytes:
    """Send a byte each second until the other side hangs up; what it said."""
    found = b""
    with suppress(OSError):
        while True:
            with suppress(TimeoutError):
                chunk = await asyncio.wait_for(reader.read(65536), 1)
                if not chunk:
                    break
                found += chunk
            writer.write(b" ")
    return found


async def idle(scene: Scene, count: int, within: float, *, tls: bool) -> None:
    """So many connections on which nothing is ever said; they go in the end."""
    async with AsyncExitStack() as stack:
        lines = [await stack.enter_async_context(scene.line(tls=tls)) for _ in range(count)]
        await scene.well()

        async def gone() -> bool:
            await scene.well()
            return all(reader.at_eof() or reader.exception() for reader, _ in lines)

        await until(gone, within + SLACK, "silent connections are closed")


UNFINISHED = f"{HEADER}Content-Length: {LARGEST}\r\n\r\n".encode() + b" " * (LARGEST - 1000)
CRUMBS = f"{HEADER}Transfer-Encoding: chunked\r\n\r\n".encode() + b"2\r\n  \r\n" * 9000


async def large_at_once(scene: Scene, count: int, data: bytes) -> None:
    """So many bodies at once, none of them finished."""
    async with AsyncExitStack() as stack:
        for _ in range(count):
            _, writer = await stack.enter_async_context(scene.line())
            writer.write(data)
        for _ in range(10):
            await scene.well()
            await asyncio.sleep(0.5)
    await scene.well()


PLAYS: dict[str, Callable[[Scene], Awaitable[None]]] = {
    "random-bytes": random_bytes,
    "broken-reviews": broken_reviews,
    "deep-nesting": deep_nesting,
    "huge-values": huge_values,
    "many-faults": many_faults,
    "content-types": content_types,
    "encodings": encodings,
    "methods-and-paths": methods_and_paths,
    "no-http": no_http,
    "slow-handshakes": partial(slow, begin=b"\x16\x03\x01\x02\x00", count=100, within=HANDSHAKE, tls=False),
    "slow-heads": partial(slow, begin=BEGIN + b"A: ", count=100, within=REQUEST),
    "slow-bodies": partial(slow, begin=f"{HEADER}Content-Length: 1000\r\n\r\n{{".encode(), count=100, within=REQUEST),
    "slow-second-heads": partial(
        slow, begin=f"{HEADER}Content-Length: 1\r\n\r\n{{POST / HTTP/1.1\r\nA: ".encode(), count=20, within=REQUEST
    ),
    "idle-connections": partial(idle, count=700, within=IDLE, tls=True),
    "idle-sockets": partial(idle, count=2000, within=HANDSHAKE, tls=False),
    "large-at-once": partial(large_at_once, count=100, data=UNFINISHED),
    "many-large-at-once": partial(large_at_once, count=500, data=UNFINISHED[: 2**20]),
    "crumbs-at-once": partial(large_at_once, count=500, data=CRUMBS),
}
GATE = ("random-bytes", "deep-nesting", "content-types")


async def played(stage: Stage, _: References, play: Callable[[Scene], Awaitable[None]]) -> None:
    """One kind of nonsense; before and after, good reviews are answered."""
    async with webhook(stage) as here:
        tls = trusting(here.pair.ca)
        async with caller(tls) as session:
            scene = Scene(stage, here, session, tls)
            await scene.well()
            await play(scene)
            await scene.well()
            code = (await here.metrics())["controller_runtime_webhook_panics_total"]
            stage.holds(code == 0, f"{code:g} reviews met an error of ours")
            stage.holds(not here.failures(), f"admission itself: {here.failures()}")
            stage.holds(len(here.process.began) == 1, "the process was started again")
    print(f"{stage.namespace}: at most {scene.most:.0f} MiB")


def cases() -> list[Case]:
    """Each kind of nonsense."""
    return [
        Case(f"fuzz/port/{name}", partial(played, play=play), gate=name in GATE, limit=180)
        for name, play in PLAYS.items()
    ]
