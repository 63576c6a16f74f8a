import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from aiohttp import web

from memcached_operator import metrics
from memcached_operator.kube import reflector as source
from memcached_operator.kube.client import Client
from memcached_operator.kube.reflector import Reflector
from memcached_operator.kube.resource import PODS, SERVICES, Object, Resource
from unit.servers import Script, answer, connection, serving

PAUSE = 0.02
LISTED = "100"
Told = tuple[str, str, str]
"""Plural, what, and name of an event."""


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of a test's size."""
    monkeypatch.setattr(source, "MIN_BACKOFF", PAUSE)


def line(what: str, version: int, name: str = "a") -> str:
    """An event as the API server writes it."""
    return json.dumps({"type": what, "object": {"metadata": {"name": name, "resourceVersion": str(version)}}}) + "\n"


def failed(code: int) -> str:
    """What the API server writes where it cannot go on with a watch."""
    status = {"kind": "Status", "code": code, "reason": "Gone", "message": "too old resource version"}
    return json.dumps({"type": "ERROR", "object": status}) + "\n"


class Watching:
    """What became of watching a scripted API server: what was told, and how often everything was read anew."""

    def __init__(self, *answers: Callable[[], web.Response]) -> None:
        self.script = Script([*answers, answer(200)])
        self.told: list[Told] = []
        self.reads = 0
        self.requests = 0

    @property
    def versions(self) -> list[str]:
        """From where each of the expected watches began; on a busy machine more may follow before they are stopped."""
        return [request.query["resourceVersion"] for request in self.script.requests[: self.requests]]

    @property
    def gaps(self) -> list[float]:
        """Seconds between the requests."""
        return [later - earlier for earlier, later in pairwise(self.script.times)]

    def until(self, requests: int, *reflectors: Reflector) -> "Watching":
        """Watch until so many requests were made."""
        self.requests = requests
        asyncio.run(self._run(requests, reflectors or (Reflector(PODS, None, "", "7"),)))
        return self

    async def _run(self, requests: int, reflectors: tuple[Reflector, ...]) -> None:
        async with serving(self.script) as there, there.session() as session, asyncio.timeout(10):
            stop = asyncio.Event()
            client = Client(there, session)
            watching = source.run_reflectors(client, reflectors, self._read, self._notice, stop, max_backoff=8 * PAUSE)
            work = asyncio.create_task(watching)
            while len(self.script.requests) < requests and not work.done():  # noqa: ASYNC110 - done by a server
                await asyncio.sleep(0.005)
            stop.set()
            await work

    async def _read(self, reflector: Reflector) -> None:
        self.reads += 1
        reflector.version = LISTED

    def _notice(self, resource: Resource, what: str, obj: Object) -> None:
        self.told.append((resource.plural, what, obj["metadata"]["name"]))


def test_every_event_is_told_but_bookmarks() -> None:
    events = [line("ADDED", 8), line("MODIFIED", 9), line("BOOKMARK", 10, ""), line("DELETED", 11)]
    watching = Watching(answer(200, "".join(events))).until(2)
    assert watching.told == [("pods", "updated", "a"), ("pods", "updated", "a"), ("pods", "deleted", "a")]


def test_a_watch_goes_on_where_the_last_one_ended() -> None:
    first, second = answer(200, line("ADDED", 8) + line("BOOKMARK", 90, "")), answer(200, line("ADDED", 95))
    assert Watching(first, second).until(4).versions == ["7", "90", "95", "95"]


def test_what_is_asked_for() -> None:
    reflector = Reflector(PODS, "test", "app=cache", "7")
    request = Watching().until(1, reflector).script.requests[0]
    assert request.path == "/api/v1/namespaces/test/pods"
    asked = dict(request.query)
    assert 300 <= int(asked.pop("timeoutSeconds")) <= 600
    assert asked == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "labelSelector": "app=cache",
    }


@pytest.mark.parametrize("gone", [answer(410), answer(200, failed(410))], ids=["answer", "event"])
def test_where_the_place_is_too_old_everything_is_read_anew(gone: Any) -> None:
    watching = Watching(gone).until(2)
    assert (watching.versions, watching.reads) == (["7", LISTED], 1)


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
def test_no_refusal_ends_it(status: int) -> None:
    watching = Watching(answer(status), answer(status), answer(200, line("ADDED", 8))).until(4)
    assert watching.versions == ["7", "7", "7", "8"]
    assert watching.told == [("pods", "updated", "a")]
    assert not watching.reads


BROKEN = {
    "an error of the server's own": failed(500),
    "no JSON": "<h1>Log in</h1>\n",
    "no event": '{"kind": "Status"}\n',
    "an event of nothing": '{"type": "ADDED", "object": {}}\n',
    "an event of no state": '{"type": "ADDED", "object": {"metadata": {"name": "b", "resourceVersion": "new"}}}\n',
    "an event of nobody": '{"type": "ADDED", "object": {"metadata": {"resourceVersion": "9"}}}\n',
    "a place that is none": '{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": ""}}}\n',
    "an event of a word": '{"type": "ADDED", "object": "b"}\n',
    "an error without words": '{"type": "ERROR", "object": {}}\n',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_nothing_in_a_watch_ends_it(text: str) -> None:
    watching = Watching(answer(200, line("ADDED", 8) + text)).until(2)
    assert (watching.versions, watching.reads) == (["7", "8"], 0)


def test_a_line_that_was_cut_off_is_told_when_it_is_whole() -> None:
    whole = line("ADDED", 9, "b")
    watching = Watching(answer(200, line("ADDED", 8) + whole[:20]), answer(200, whole)).until(3)
    assert watching.versions == ["7", "8", "9"]
    assert watching.told == [("pods", "updated", "a"), ("pods", "updated", "b")]


def test_a_line_may_be_as_long_as_an_object() -> None:
    name = "x" * 1_500_000
    assert Watching(answer(200, line("ADDED", 8, name))).until(2).told == [("pods", "updated", name)]


def test_pauses_double_up_to_the_last_one() -> None:
    gaps = Watching(*[answer(500)] * 6).until(7).gaps
    expected = [PAUSE, 2 * PAUSE, 4 * PAUSE, 8 * PAUSE, 8 * PAUSE, 8 * PAUSE]
    assert all(gap >= 0.85 * pause for gap, pause in zip(gaps, expected, strict=True))
    assert sum(gaps) < 1.1 * sum(expected) + 0.5


def test_retry_after_is_obeyed() -> None:
    assert 0.85 <= Watching(answer(429, Retry_After="1")).until(2).gaps[0] < 2


def test_a_watch_that_is_closed_at_once_is_paced() -> None:
    gaps = Watching().until(5).gaps
    assert all(gap >= 0.85 * pause for gap, pause in zip(gaps, [PAUSE, 2 * PAUSE, 4 * PAUSE, 8 * PAUSE], strict=True))


def test_a_watch_that_lived_long_is_followed_by_the_next_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MIN_WATCH_DURATION", 0)
    monkeypatch.setattr(source, "MIN_BACKOFF", 60)
    assert Watching().until(5).versions == ["7"] * 5


def test_feeds_do_not_hold_up_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "MIN_BACKOFF", 60)
    reflectors = [Reflector(PODS, "a", "", "1"), Reflector(PODS, "b", "", "2"), Reflector(SERVICES, "a", "", "3")]
    assert sorted(Watching(answer(500)).until(3, *reflectors).versions) == ["1", "2", "3"]


def test_a_server_that_is_away_is_waited_for() -> None:
    before = metrics.REGISTRY.get_sample_value(*COUNTED) or 0

    async def run() -> None:
        async with serving(Script([answer(200)])) as there:
            port = int(there.server.rpartition(":")[2])
        script, stop = Script([answer(200)]), asyncio.Event()
        there = connection(f"http://127.0.0.1:{port}")
        async with there.session() as session, asyncio.timeout(10):
            reflectors = [Reflector(PODS, None, "", "7")]
            work = asyncio.create_task(source.run_reflectors(Client(there, session), reflectors, never, ignored, stop))
            await asyncio.sleep(3 * PAUSE)
            async with serving(script, port):
                while not script.requests:  # noqa: ASYNC110 - done by a server
                    await asyncio.sleep(0.005)
                stop.set()
                await work

    asyncio.run(run())
    assert (metrics.REGISTRY.get_sample_value(*COUNTED) or 0) > before


COUNTED = ("memcached_operator_watch_retries_total", {"resource": "pods", "reason": "Unreachable"})


async def never(_: Reflector) -> None:
    """Nothing is to be read."""
    raise AssertionError("everything is read anew")


def ignored(*_: object) -> None:
    """An event that does not matter."""
