import asyncio
import json
from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from aiohttp import web

from memcached_operator import metrics
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.resource import PODS, SERVICES, Object, Resource
from memcached_operator.world import reflector as module
from memcached_operator.world.knowledge import LASTING
from memcached_operator.world.reflector import Reflector
from unit.servers import Script, connection, response, serving

PAUSE = 0.02
LISTED = "100"
Event = tuple[str, str, str]
"""Plural, change and name of an event."""


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses."""
    monkeypatch.setattr(module, "MIN_BACKOFF", PAUSE)


def line(event_type: str, version: int, name: str = "a") -> str:
    """A watch event as the API server sends it."""
    return (
        json.dumps({"type": event_type, "object": {"metadata": {"name": name, "resourceVersion": str(version)}}}) + "\n"
    )


def failed(code: int) -> str:
    """The ERROR event that the API server sends when it ends a watch."""
    status = {"kind": "Status", "code": code, "reason": "Gone", "message": "too old resource version"}
    return json.dumps({"type": "ERROR", "object": status}) + "\n"


class Watching:
    """Watches a scripted API server. Records the events and the number of lists."""

    def __init__(self, *responses: Callable[[], web.Response]) -> None:
        self.script = Script([*responses, response(200)])
        self.events: list[Event] = []
        self.lists = 0
        self.requests = 0

    @property
    def versions(self) -> list[str]:
        """The resourceVersion of each expected watch; on a busy machine more may follow before the watches stop."""
        return [request.query["resourceVersion"] for request in self.script.requests[: self.requests]]

    @property
    def gaps(self) -> list[float]:
        """Seconds between the requests."""
        return [later - earlier for earlier, later in pairwise(self.script.times)]

    def until(self, requests: int, *reflectors: Reflector) -> "Watching":
        """Watch until this many requests were sent."""
        self.requests = requests
        asyncio.run(self._run(requests, reflectors or (Reflector(PODS, None, "", "7"),)))
        return self

    async def _run(self, requests: int, reflectors: tuple[Reflector, ...]) -> None:
        async with serving(self.script) as conn, conn.session() as session, asyncio.timeout(10):
            stop = asyncio.Event()
            client = ApiClient(conn, session)
            watching = module.run_reflectors(client, reflectors, self._list, self._record, stop, max_backoff=8 * PAUSE)
            work = asyncio.create_task(watching)
            while len(self.script.requests) < requests and not work.done():  # noqa: ASYNC110 - changed by a server
                await asyncio.sleep(0.005)
            stop.set()
            await work

    async def _list(self, reflector: Reflector) -> None:
        self.lists += 1
        reflector.version = LISTED

    def _record(self, resource: Resource, change: str, obj: Object) -> None:
        self.events.append((resource.plural, change, obj["metadata"]["name"]))


def test_every_event_except_bookmarks_is_handled() -> None:
    events = [line("ADDED", 8), line("MODIFIED", 9), line("BOOKMARK", 10, ""), line("DELETED", 11)]
    watching = Watching(response(200, "".join(events))).until(2)
    assert watching.events == [("pods", "updated", "a"), ("pods", "updated", "a"), ("pods", "deleted", "a")]


def test_watch_resumes_where_the_last_one_ended() -> None:
    first, second = response(200, line("ADDED", 8) + line("BOOKMARK", 90, "")), response(200, line("ADDED", 95))
    assert Watching(first, second).until(4).versions == ["7", "90", "95", "95"]


def test_watch_request() -> None:
    reflector = Reflector(PODS, "test", "app=cache", "7")
    request = Watching().until(1, reflector).script.requests[0]
    assert request.path == "/api/v1/namespaces/test/pods"
    query = dict(request.query)
    assert 300 <= int(query.pop("timeoutSeconds")) <= 600
    assert query == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "labelSelector": "app=cache",
    }


@pytest.mark.parametrize("expired", [response(410), response(200, failed(410))], ids=["response", "event"])
def test_expired_resource_version_causes_a_new_list(expired: Any) -> None:
    watching = Watching(expired).until(2)
    assert (watching.versions, watching.lists) == (["7", LISTED], 1)


def test_right_that_is_missing_causes_a_list_which_says_so() -> None:
    watching = Watching(*[response(403)] * LASTING, response(200, line("ADDED", 8))).until(LASTING + 1)
    assert (watching.versions, watching.lists) == (["7"] * LASTING + [LISTED], 1)


@pytest.mark.parametrize("status", [403, 404, 429, 500, 503])
def test_error_response_does_not_end_the_watch(status: int) -> None:
    watching = Watching(response(status), response(status), response(200, line("ADDED", 8))).until(4)
    assert watching.versions == ["7", "7", "7", "8"]
    assert watching.events == [("pods", "updated", "a")]
    assert not watching.lists


BROKEN = {
    "internal server error": failed(500),
    "not JSON": "<h1>Log in</h1>\n",
    "not an event": '{"kind": "Status"}\n',
    "event with an empty object": '{"type": "ADDED", "object": {}}\n',
    "event with a bad version": '{"type": "ADDED", "object": {"metadata": {"name": "b", "resourceVersion": "x"}}}\n',
    "event without a name": '{"type": "ADDED", "object": {"metadata": {"resourceVersion": "9"}}}\n',
    "bookmark without a resourceVersion": '{"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": ""}}}\n',
    "event with a string": '{"type": "ADDED", "object": "b"}\n',
    "error with an empty object": '{"type": "ERROR", "object": {}}\n',
    "error with other types": '{"type": "ERROR", "object": {"code": "x", "reason": 1, "message": ["a"]}}\n',
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN.keys())
def test_malformed_line_restarts_the_watch(text: str) -> None:
    watching = Watching(response(200, line("ADDED", 8) + text)).until(2)
    assert (watching.versions, watching.lists) == (["7", "8"], 0)


def test_truncated_line_is_handled_when_it_arrives_complete() -> None:
    complete = line("ADDED", 9, "b")
    watching = Watching(response(200, line("ADDED", 8) + complete[:20]), response(200, complete)).until(3)
    assert watching.versions == ["7", "8", "9"]
    assert watching.events == [("pods", "updated", "a"), ("pods", "updated", "b")]


def test_line_may_be_as_long_as_the_largest_object() -> None:
    name = "x" * 1_500_000
    assert Watching(response(200, line("ADDED", 8, name))).until(2).events == [("pods", "updated", name)]


def test_pauses_double_up_to_the_maximum() -> None:
    gaps = Watching(*[response(500)] * 6).until(7).gaps
    expected = [PAUSE, 2 * PAUSE, 4 * PAUSE, 8 * PAUSE, 8 * PAUSE, 8 * PAUSE]
    assert all(gap >= 0.85 * pause for gap, pause in zip(gaps, expected, strict=True))
    assert sum(gaps) < 1.1 * sum(expected) + 0.5


def test_retry_after_is_respected() -> None:
    assert 0.85 <= Watching(response(429, Retry_After="1")).until(2).gaps[0] < 2


def test_watch_that_is_closed_immediately_backs_off() -> None:
    gaps = Watching().until(5).gaps
    assert all(gap >= 0.85 * pause for gap, pause in zip(gaps, [PAUSE, 2 * PAUSE, 4 * PAUSE, 8 * PAUSE], strict=True))


def test_long_watch_is_restarted_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_WATCH_DURATION", 0)
    monkeypatch.setattr(module, "MIN_BACKOFF", 60)
    assert Watching().until(5).versions == ["7"] * 5


def test_long_watch_that_fails_is_restarted_after_the_shortest_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_WATCH_DURATION", 0)
    gaps = Watching(*[response(500)] * 5).until(5).gaps
    assert all(gap >= 0.85 * PAUSE for gap in gaps[:4])


def test_reflectors_do_not_block_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_BACKOFF", 60)
    reflectors = [Reflector(PODS, "a", "", "1"), Reflector(PODS, "b", "", "2"), Reflector(SERVICES, "a", "", "3")]
    assert sorted(Watching(response(500)).until(3, *reflectors).versions) == ["1", "2", "3"]


def test_watch_is_retried_while_the_server_is_unreachable() -> None:
    before = metrics.REGISTRY.get_sample_value(*RETRIES) or 0

    async def run() -> None:
        async with serving(Script([response(200)])) as conn:
            port = int(conn.server.rpartition(":")[2])
        script, stop = Script([response(200)]), asyncio.Event()
        conn = connection(f"http://127.0.0.1:{port}")
        async with conn.session() as session, asyncio.timeout(10):
            reflectors = [Reflector(PODS, None, "", "7")]
            work = asyncio.create_task(
                module.run_reflectors(ApiClient(conn, session), reflectors, list_never, ignore, stop)
            )
            await asyncio.sleep(3 * PAUSE)
            async with serving(script, port):
                while not script.requests:  # noqa: ASYNC110 - changed by a server
                    await asyncio.sleep(0.005)
                stop.set()
                await work

    asyncio.run(run())
    assert (metrics.REGISTRY.get_sample_value(*RETRIES) or 0) > before


def test_list_that_stays_older_than_what_is_known_is_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    now, reflector = 100.0, Reflector(PODS, None, "", "7")
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now))
    found: list[bool] = []
    for older, seconds in ((True, 0), (True, module.OUTDATED_PERIOD - 1), (True, 1), (False, 0), (True, 0)):
        now += seconds
        found.append(reflector.accepts(older=older))
    assert found == [False, False, True, True, False]


def test_older_list_ends_the_watch() -> None:
    async def watch(*_: object) -> None:
        await asyncio.Event().wait()

    async def run() -> Reflector:
        reflector = Reflector(PODS, None, "", "7", watch=watch)
        async with connection("http://127.0.0.1:1").session() as session, asyncio.timeout(10):
            client = ApiClient(connection("http://127.0.0.1:1"), session)
            watching = asyncio.create_task(reflector.watch_events(client, ignore))
            await asyncio.sleep(0)
            reflector.accepts(older=True)
            await watching
        return reflector

    assert asyncio.run(run()).version == "", "it is listed again"


RETRIES = ("memcached_operator_watch_retries_total", {"resource": "pods", "reason": "Unreachable"})


async def list_never(_: Reflector) -> None:
    """Fail: no list is expected."""
    raise AssertionError("unexpected list")


def ignore(*_: object) -> None:
    """Ignore an event."""
