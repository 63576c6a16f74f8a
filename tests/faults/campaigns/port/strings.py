"""Strings in every place of a review that an answer or the log may repeat: some megabytes of them, or hostile ones."""

import asyncio
import json
import re
from collections.abc import Callable
from typing import Any

from faults.campaigns.port.floods import non_reading_client
from faults.campaigns.port.scene import HEADER, LARGEST, PATH, Scene
from faults.webhook import JSON, review
from memcached_api.memcached import MEMCACHED
from memcached_operator.kube.resource import Object
from memcached_webhooks.review import MAX_RESPONSE_SIZE

SHOWN = 100
"""Characters of a string that are repeated (memcached_api.field_errors.MAX_VALUE_LENGTH)."""
AT_ONCE = 4
"""Reviews with long strings at the same time."""
FORGED = "2026-01-01 00:00:00,000 INFO    memcached_webhooks.server: FORGED"
LINE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} [A-Z]+ +memcached_[a-z_.]+: (?!FORGED)")
MAX_LOGGED_PER_SECOND = 10
LONGEST_LINE = 2000
"""Characters."""


def _place(*way: str | int) -> Callable[[str], Object]:
    """A review with a string at one place, of an object that is denied."""

    def made(text: str) -> Object:
        body = review(MEMCACHED, {"metadata": {"name": "cache"}, "spec": {"size": 0}})
        parent: Any = body
        for name in way[:-1]:
            parent = parent.setdefault(name, {})
        parent[way[-1]] = text
        return body

    return made


def _key(text: str) -> Object:
    spec = {"resources": {"limits": {text: "1"}, "requests": {text: "2"}}}
    return review(MEMCACHED, {"metadata": {"name": "cache"}, "spec": spec})


def _generated(text: str) -> Object:
    return review(MEMCACHED, {"metadata": {"generateName": text}, "spec": {"size": 0}})


PLACES: dict[str, Callable[[str], Object]] = {
    "apiVersion": _place("apiVersion"),
    "kind": _place("kind"),
    **{name: _place("request", name) for name in ("uid", "operation", "subResource", "name")},
    **{f"kind.{name}": _place("request", "kind", name) for name in ("group", "version", "kind")},
    "metadata.name": _place("request", "object", "metadata", "name"),
    "metadata.generateName": _generated,
    **{f"spec.{name}": _place("request", "object", "spec", name) for name in ("size", "image", "imagePullPolicy")},
    "spec.cache.memory": _place("request", "object", "spec", "cache", "memory"),
    "spec.resources.limits": _key,
}


async def long_strings(scene: Scene) -> None:
    """Four reviews with as much as a body may have, in each place: none is repeated."""
    for name, made in PLACES.items():
        spare = len(json.dumps(made(""))) * 2
        text = "x" * ((LARGEST - spare) // (2 if made is _key else 1))
        body = json.dumps(made(text)).encode()
        await scene.while_well(_all_at_once(scene, name, body))
    await scene.while_well(_unread(scene, json.dumps(PLACES["kind.group"]("x" * (LARGEST - 2000))).encode()))


async def _all_at_once(scene: Scene, name: str, body: bytes) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(AT_ONCE):
            group.create_task(_short(scene, name, body))


async def _short(scene: Scene, name: str, body: bytes) -> None:
    async with scene.session.post(scene.webhook.url + PATH, data=body, headers=JSON) as answer:
        payload = await answer.read()
    scene.stage.holds(answer.status in (200, 400), f"{answer.status} for a long {name}")
    scene.stage.holds(b'"allowed":true' not in payload, f"a long {name} is allowed")
    scene.stage.holds(len(payload) <= MAX_RESPONSE_SIZE, f"the answer to a long {name} has {len(payload)} bytes")
    scene.stage.holds(b"x" * (SHOWN + 1) not in payload, f"a long {name} is repeated")


async def _unread(scene: Scene, body: bytes) -> None:
    """The same, and no answer is read."""

    async def ask() -> None:
        async with non_reading_client(scene) as writer:
            writer.write(f"{HEADER}Content-Length: {len(body)}\r\n\r\n".encode() + body)
            await writer.drain()
            await asyncio.sleep(2)

    await asyncio.gather(*(ask() for _ in range(AT_ONCE)))


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


async def hostile_names(scene: Scene) -> None:
    """Names that forge a line of the log, or are commands to a terminal."""
    for _ in range(20):
        for text in HOSTILE:
            for made in PLACES.values():
                await scene.refused(json.dumps(made(text)).encode())
    await scene.well()


def check_log(scene: Scene, seconds: float) -> None:
    """Each line is one of ours and printable, and there are few. `seconds`: as long as the process has run."""
    text = scene.webhook.process.text()
    lines = text.splitlines()
    for line in lines:
        scene.stage.holds(LINE.match(line) and line.isprintable(), f"not a line of ours: {line[:200]!r}")
        scene.stage.holds(len(line) <= LONGEST_LINE, f"a line of {len(line)} characters: {line[:200]!r}")
    most = MAX_LOGGED_PER_SECOND * (int(seconds) + 2)
    denied = sum(" denied " in line for line in lines)
    scene.stage.holds(denied <= most, f"{denied} denials are logged in {seconds:.0f} s")
    scene.stage.holds(len(lines) - denied <= 20, f"{len(lines) - denied} other lines are logged")
