"""Long and hostile strings in every field of a review that a response or the log may repeat."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from faults.campaigns.port.floods import non_reading_client
from faults.campaigns.port.setup import HEADER, MAX_BODY, PATH, Setup
from faults.webhook import JSON, review
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.kube.resource import Object
from memcached_webhooks.review import MAX_RESPONSE_SIZE

MAX_SHOWN = 100
"""Maximum number of characters of a string that are repeated (MAX_VALUE_LENGTH of field_errors)."""
PARALLEL = 4
"""Reviews with long strings that are sent in parallel."""
FORGED = "2026-01-01 00:00:00,000 INFO    memcached_webhooks.server: FORGED"
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ +memcached_[a-z_.]+: (?!FORGED)")
MAX_LOGGED_PER_SECOND = 10
MAX_LINE = 2000
"""Maximum length of a log line, in characters."""


def _field(*path: str | int) -> Callable[[str], Object]:
    """Reviews of a denied object with a string in one field."""

    def build(text: str) -> Object:
        body = review(MEMCACHED, {"metadata": {"name": "cache"}, "spec": {"size": 0}})
        parent: Any = body
        for name in path[:-1]:
            parent = parent.setdefault(name, {})
        parent[path[-1]] = text
        return body

    return build


def _key(text: str) -> Object:
    spec = {"resources": {"limits": {text: "1"}, "requests": {text: "2"}}}
    return review(MEMCACHED, {"metadata": {"name": "cache"}, "spec": spec})


def _generated(text: str) -> Object:
    return review(MEMCACHED, {"metadata": {"generateName": text}, "spec": {"size": 0}})


FIELDS: dict[str, Callable[[str], Object]] = {
    "apiVersion": _field("apiVersion"),
    "kind": _field("kind"),
    **{name: _field("request", name) for name in ("uid", "operation", "subResource", "name")},
    **{f"kind.{name}": _field("request", "kind", name) for name in ("group", "version", "kind")},
    "metadata.name": _field("request", "object", "metadata", "name"),
    "metadata.generateName": _generated,
    **{f"spec.{name}": _field("request", "object", "spec", name) for name in ("size", "image", "imagePullPolicy")},
    "spec.cache.memory": _field("request", "object", "spec", "cache", "memory"),
    "spec.resources.limits": _key,
}


async def long_strings(setup: Setup) -> None:
    """Four parallel reviews with the longest possible string, for each field: it is not repeated."""
    for name, build in FIELDS.items():
        spare = len(json.dumps(build(""))) * 2
        text = "x" * ((MAX_BODY - spare) // (2 if build is _key else 1))
        body = json.dumps(build(text)).encode()
        await setup.while_serving(_send_in_parallel(setup, name, body))
    await setup.while_serving(_unread(setup, json.dumps(FIELDS["kind.group"]("x" * (MAX_BODY - 2000))).encode()))


async def _send_in_parallel(setup: Setup, name: str, body: bytes) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(PARALLEL):
            group.create_task(_check_not_repeated(setup, name, body))


async def _check_not_repeated(setup: Setup, name: str, body: bytes) -> None:
    async with setup.session.post(setup.webhook.url + PATH, data=body, headers=JSON) as response:
        payload = await response.read()
    setup.sandbox.check(response.status in (200, 400), f"{response.status} for a long {name}")
    setup.sandbox.check(b'"allowed":true' not in payload, f"a long {name} is allowed")
    setup.sandbox.check(len(payload) <= MAX_RESPONSE_SIZE, f"the response to a long {name} has {len(payload)} bytes")
    setup.sandbox.check(b"x" * (MAX_SHOWN + 1) not in payload, f"a long {name} is repeated")


async def _unread(setup: Setup, body: bytes) -> None:
    """The same, without reading the responses."""

    async def send() -> None:
        async with non_reading_client(setup) as writer:
            writer.write(f"{HEADER}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            await asyncio.sleep(2)

    await asyncio.gather(*(send() for _ in range(PARALLEL)))


HOSTILE = (
    f"a\n{FORGED}",
    f"a\r{FORGED}",
    *(f"a{end}{FORGED}" for end in "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"),
    "\x1b[2J\x1b[31mred\x1b]0;title\x07",
    "\x9b31m\x7f\x00",
    "a\"b'c\\d`$(id)",
    "\u202eesrever\ufeff\U000e0041",
    "%s%n{0}",
    "é" * 100,
)


async def hostile_names(setup: Setup) -> None:
    """Names that forge a log line or contain terminal commands."""
    for _ in range(20):
        for text in HOSTILE:
            for build in FIELDS.values():
                await setup.check_rejected(json.dumps(build(text)).encode())
    await setup.check_reviews()


def check_log(setup: Setup, seconds: float) -> None:
    """Check that the log has few lines, all of them ours and printable. `seconds`: how long the process has run."""
    text = setup.webhook.process.log_text()
    lines = text.splitlines()
    for line in lines:
        setup.sandbox.check(LINE.match(line) and line.isprintable(), f"not one of our log lines: {line[:200]!r}")
        setup.sandbox.check(len(line) <= MAX_LINE, f"a log line of {len(line)} characters: {line[:200]!r}")
    limit = MAX_LOGGED_PER_SECOND * (int(seconds) + 2)
    denied = sum(" rejected " in line for line in lines)
    setup.sandbox.check(denied <= limit, f"{denied} denials were logged in {seconds:.0f} s")
    setup.sandbox.check(len(lines) - denied <= 20, f"{len(lines) - denied} other lines were logged")
