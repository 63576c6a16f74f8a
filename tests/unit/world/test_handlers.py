"""kopf delivers the events of the kinds; whatever ends a kopf operator, the reflector lists again and restarts it."""

import asyncio
import functools
import gc
import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from memcached_operator import metrics
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.engine.runtime.signals import stop_on_signals
from memcached_operator.kube.bodies import MAX_BODY
from memcached_operator.kube.client import ApiClient
from memcached_operator.kube.credentials import TokenFile
from memcached_operator.kube.resource import Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.world import reflector as module
from memcached_operator.world.kopf_operators import requests
from memcached_operator.world.kopf_operators.handlers import handlers
from memcached_operator.world.kopf_operators.watch import kopf_watch
from memcached_operator.world.reflector import Reflector, run_reflectors
from support.lists import listed
from unit.scripted_server import FOREVER, ScriptedServer, Watch, failed, line
from unit.servers import serving

PAUSE = 0.01
MAX_DURATION = 300.0
"""Seconds after which a test fails, on a busy machine."""
MAX_SECONDS_TO_STOP = 4.0
"""Less than kopf waits for a task that it must cancel. An idle machine needs 0.05 s."""
Event = tuple[str, str, str]
"""Plural, change and name of an event."""
SEEN = Watch(lines=(line("ADDED", 200, "seen"),), open=True)
"""A watch that works: it sends one event."""


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short pauses."""
    monkeypatch.setattr(module, "MIN_BACKOFF", PAUSE)


class Watching:
    """Lists and watches kinds with kopf. Records the events."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.max_backoff = 8 * PAUSE
        self.seconds_to_stop = 0.0
        self.events: list[Event] = []
        self.stop = asyncio.Event()
        self.signal_handlers = 0
        self.defect = ""
        self.credentials: TokenFile | None = None

    def until(self, condition: Callable[["Watching"], bool], *reflectors: Reflector) -> "Watching":
        """Watch Memcacheds, or with these reflectors, until the condition is true."""

        async def wait() -> None:
            while not condition(self):  # noqa: ASYNC110 - changed by a server
                await asyncio.sleep(0.005)

        asyncio.run(self.during(wait, *reflectors))
        return self

    async def during(self, work: Callable[[], Any], *reflectors: Reflector) -> None:
        """Watch while a coroutine runs. Nothing of it remains afterwards."""
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(asyncio.timeout(MAX_DURATION))
            config = replace(await stack.enter_async_context(serving(self.server)), credentials=self.credentials)
            session = await stack.enter_async_context(config.session())
            client = ApiClient(config, session)

            async def list_again(reflector: Reflector) -> None:
                _, reflector.version = await listed(client, reflector.resource, reflector.namespace)

            watch = kopf_watch(handlers, config, self._install_signal_handlers)
            for reflector in reflectors or (reflectors := (Reflector(MEMCACHEDS, None, ""),)):
                reflector.watch = watch
            watching = asyncio.create_task(
                run_reflectors(client, reflectors, list_again, self._record, self.stop, self.max_backoff)
            )
            try:
                await work()
            finally:
                self.stop.set()
                stopped = time.monotonic()
                await watching
                self.seconds_to_stop = time.monotonic() - stopped

    def _install_signal_handlers(self) -> None:
        self.signal_handlers += 1
        stop_on_signals(self.stop)

    def _record(self, resource: Resource, change: str, obj: Object) -> None:
        if obj["metadata"]["name"] == self.defect:
            raise ValueError("unexpected")
        self.events.append((resource.plural, change, obj["metadata"]["name"]))


def seen(watching: Watching) -> bool:
    """Whether the event of SEEN was received."""
    return ("memcacheds", "updated", "seen") in watching.events


def serve(*watches: Watch, **options: Any) -> Watching:
    """Watching of a server with these responses to watches for Memcacheds."""
    return Watching(ScriptedServer([MEMCACHEDS, APPSERVICES], {"memcacheds": list(watches)}, **options))


def test_every_event_except_bookmarks_is_handled() -> None:
    lines = (line("ADDED", 201), line("MODIFIED", 202), line("BOOKMARK", 203, ""), line("DELETED", 204))
    watching = serve(Watch(lines=lines, open=True)).until(lambda it: len(it.events) == 3)
    assert watching.events == [("memcacheds", "updated", "a")] * 2 + [("memcacheds", "deleted", "a")]


def test_the_first_watch_starts_where_the_list_ended() -> None:
    watching = serve(SEEN, listed={"memcacheds": [obj("old")]}).until(seen)
    (query,) = watching.server.queries["memcacheds"]
    assert 300 <= int(query.pop("timeoutSeconds")) <= 600
    assert query == {"watch": "true", "allowWatchBookmarks": "true", "resourceVersion": "100"}
    assert watching.server.lists == ["memcacheds"]
    assert not watching.server.other


def test_every_request_has_the_credentials(tmp_path: Path) -> None:
    """The controller logs in once, for kopf too."""
    (tmp_path / "token").write_text("secret")
    watching = serve(SEEN, token="secret")
    watching.credentials = TokenFile(tmp_path / "token")
    assert not watching.until(seen).server.other


def obj(name: str) -> Object:
    """An object of a list."""
    return {"metadata": {"name": name, "namespace": "test", "uid": name, "resourceVersion": "50"}}


def test_a_long_watch_is_continued_without_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_WATCH_DURATION", 0)
    watching = serve(Watch(lines=(line("ADDED", 150), line("BOOKMARK", 160, ""))), SEEN).until(seen)
    assert [query["resourceVersion"] for query in watching.server.queries["memcacheds"]] == ["100", "160"]
    assert watching.server.lists == ["memcacheds"]


def test_known_events_are_left_out_and_a_long_watch_continues_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only changes: an object that appears or disappears has consequences besides its content."""
    monkeypatch.setattr(module, "MIN_WATCH_DURATION", 0)
    known = Reflector(MEMCACHEDS, None, "", is_known=lambda key, version: (key.name, version) == ("a", "150"))
    first = Watch(lines=(line("ADDED", 149, "b"), line("MODIFIED", 151, "b"), line("MODIFIED", 150)))
    watching = serve(first, SEEN).until(seen, known)
    assert watching.events == [("memcacheds", "updated", "b")] * 2 + [("memcacheds", "updated", "seen")]
    assert [query["resourceVersion"] for query in watching.server.queries["memcacheds"]] == ["100", "150"]
    # A watch that gets only known events, or none, is continued too.
    only_known = Watch(lines=(line("MODIFIED", 150),))
    watching = serve(only_known, Watch(), SEEN).until(seen, known)
    assert [query["resourceVersion"] for query in watching.server.queries["memcacheds"]] == ["100", "150", "150"]
    assert watching.server.lists == ["memcacheds"]
    for kept in ("ADDED", "DELETED"):
        change = "deleted" if kept == "DELETED" else "updated"
        known = Reflector(MEMCACHEDS, None, "", is_known=lambda _key, version: version == "150")
        watching = serve(Watch(lines=(line(kept, 150), line("ADDED", 151, "seen")), open=True)).until(seen, known)
        assert ("memcacheds", change, "a") in watching.events


def test_a_long_watch_that_has_expired_is_followed_by_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_WATCH_DURATION", 0)
    watching = serve(Watch(lines=(line("ADDED", 150), failed(410))), SEEN).until(seen)
    assert watching.server.lists == ["memcacheds"] * 2


def test_each_namespace_has_its_own_watch() -> None:
    reflectors = [Reflector(MEMCACHEDS, "a", ""), Reflector(MEMCACHEDS, "b", "")]
    serve(FOREVER).until(lambda it: len(it.server.times["memcacheds"]) == 2, *reflectors)


FAILURES = {
    "unauthorized": Watch(401),
    "forbidden": Watch(403),
    "not found": Watch(404),
    "expired, in the response": Watch(410),
    "expired, in the stream": Watch(lines=(failed(410),)),
    "expired after an event": Watch(lines=(line("ADDED", 150), failed(410)), open=True),
    "too many requests": Watch(429),
    "unavailable": Watch(503),
    "internal error in the stream": Watch(lines=(failed(500),)),
    "closed immediately": Watch(),
    "not JSON": Watch(lines=("<h1>Log in</h1>\n",)),
    "not an event": Watch(lines=('{"kind": "Status"}\n',)),
    "incomplete line": Watch(lines=(line("ADDED", 150)[:20],)),
    "too large": Watch(lines=("x" * (MAX_BODY + 1) + "\n",), open=True),
    "event with an empty object": Watch(lines=('{"type": "ADDED", "object": {}}\n',), open=True),
    "event with a string": Watch(lines=('{"type": "ADDED", "object": "b"}\n',), open=True),
    "event with a bad version": Watch(lines=(line("ADDED", 150).replace("150", "x"),), open=True),
    "event without a name": Watch(lines=(line("ADDED", 150).replace('"name"', '"no"'),), open=True),
    "error with an empty object": Watch(lines=('{"type": "ERROR", "object": {}}\n',), open=True),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES.keys())
def test_a_failed_watch_is_listed_again_and_restarted(failure: Watch, caplog: pytest.LogCaptureFixture) -> None:
    before = retries()
    watching = serve(failure, failure, SEEN).until(seen)
    assert watching.server.lists == ["memcacheds"] * 3
    assert retries() == before + 2
    records = [each for each in caplog.records if each.levelno >= logging.INFO and each.name != "aiohttp.access"]
    assert [each.name for each in records] == ["memcached_operator.world.reflector"] * 2, caplog.text
    assert all("cannot list or watch memcacheds of all namespaces: " in each.message for each in records)
    assert not any(each.exc_info for each in records)


def retries() -> float:
    """The failed lists and watches of Memcacheds."""
    samples = [sample for metric in metrics.WATCH_RETRIES.collect() for sample in metric.samples]
    return sum(each.value for each in samples if each.labels["resource"] == "memcacheds" and "total" in each.name)


@pytest.mark.parametrize("watch", [Watch(), Watch(lines=(line("BOOKMARK", 150, ""),)), Watch(lines=(failed(410),))])
def test_a_watch_that_always_ends_backs_off(watch: Watch) -> None:
    times = serve(watch).until(lambda it: len(it.server.times["memcacheds"]) == 6).server.times["memcacheds"]
    expected = [PAUSE, 2 * PAUSE, 4 * PAUSE, 8 * PAUSE, 8 * PAUSE]
    assert all(later - earlier >= 0.85 * at for (earlier, later), at in zip(pairwise(times), expected, strict=True))


def test_the_other_kind_is_not_affected() -> None:
    server = ScriptedServer([MEMCACHEDS, APPSERVICES], {"memcacheds": [Watch(404)], "appservices": [FOREVER]})
    reflectors = [Reflector(MEMCACHEDS, None, ""), Reflector(APPSERVICES, None, "")]
    Watching(server).until(lambda it: len(it.server.times["memcacheds"]) >= 5, *reflectors)
    assert (len(server.times["appservices"]), server.lists.count("appservices")) == (1, 1)


@pytest.mark.parametrize("status", [403, 503])
def test_failed_discovery_is_retried(status: int) -> None:
    watching = serve(SEEN, discovery=status)

    def listed_twice(_: Watching) -> bool:
        if watching.server.lists.count("memcacheds") == 2:
            watching.server.discovery = 200
        return seen(watching)

    watching.until(listed_twice)


def test_a_kind_that_discovery_does_not_list_yet_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "START_TIMEOUT", 0.1)
    watching = serve(SEEN, discovered=[APPSERVICES])

    def listed_twice(_: Watching) -> bool:
        if watching.server.lists.count("memcacheds") == 2:
            watching.server.discovered = None
        return seen(watching)

    watching.until(listed_twice)


def test_a_start_that_fails_counts_as_a_short_watch() -> None:
    assert requests.START_TIMEOUT < module.MIN_WATCH_DURATION


def test_kopf_writes_nothing_to_objects() -> None:
    finalized = line("ADDED", 201, finalizers=["kopf.zalando.org/KopfFinalizerMarker"])

    async def settled(watching: Watching) -> None:
        await until(lambda: len(watching.events) == 2)
        await asyncio.sleep(0.5)  # longer than kopf waits for further events of an object

    async def run() -> None:
        watching = serve(Watch(lines=(finalized, line("ADDED", 202, "last")), open=True))
        await watching.during(lambda: settled(watching))
        assert (watching.server.other, len(watching.server.times["memcacheds"])) == ([], 1)

    asyncio.run(run())


def test_an_event_that_cannot_be_handled_ends_in_a_list() -> None:
    watching = serve(Watch(lines=(line("ADDED", 201, "broken"),), open=True), SEEN)
    watching.defect = "broken"
    assert len(watching.until(seen).server.lists) == 2


def timers(text: str) -> list[str]:
    """The timers of this event loop with this text."""
    loop: Any = asyncio.get_running_loop()
    return [each for each in map(repr, loop._scheduled) if text in each]


def test_a_watch_without_events_continues() -> None:
    async def started(watching: Watching) -> None:
        await until(lambda: len(watching.server.times["memcacheds"]) == 1)
        assert not timers("WatchRequests.fail")

    watching = serve(FOREVER)
    asyncio.run(watching.during(lambda: started(watching)))


def test_kopf_does_not_kill_the_process() -> None:
    async def run() -> None:
        watching = serve(Watch(lines=("not JSON\n",)))
        await watching.during(lambda: until(lambda: len(watching.server.times["memcacheds"]) == 3))
        assert not timers("pthread_kill")

    asyncio.run(run())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for a condition that another task makes true."""
    while not condition():  # noqa: ASYNC110 - any condition
        await asyncio.sleep(0.005)


RESTARTS = 120
"""What a restart leaves behind adds up. What is still referenced of the last ones, up to 6,000 objects, does not."""
LRU_CACHE: Any = type(functools.lru_cache(len))
WARM_UP = 20
"""Restarts until all modules are imported."""
ENDS = [Watch(403), Watch(lines=(failed(410),)), Watch(lines=("garbled\n",)), Watch(lines=(line("ADDED", 150),))]


@dataclass(frozen=True)
class Usage:
    """What the process uses while a watch is open."""

    tasks: int
    threads: int
    files: int
    objects: int

    @classmethod
    def now(cls) -> "Usage":
        """The current values. Tasks of the server do not count: a connection ends a moment after its client."""
        gc.collect()
        # Such as that of URLs, which fills within 128 restarts.
        for cache in (each for each in gc.get_objects() if isinstance(each, LRU_CACHE)):
            cache.cache_clear()
        tasks = [task for task in asyncio.all_tasks() if "RequestHandler" not in repr(task)]
        files = len(list(Path("/proc/self/fd").iterdir()))
        return cls(len(tasks), threading.active_count(), files, len(gc.get_objects()))


async def ended(before: list[Usage]) -> None:
    """Wait until the last tasks and connections of the restarts have ended: for 0.5 s, and then until no more is used
    than before, if that is known. After 10 s, the test fails with what is left."""
    await asyncio.sleep(0.5)
    deadline = time.monotonic() + 10
    while before and not is_within(Usage.now(), before[0]) and time.monotonic() < deadline:  # noqa: ASYNC110
        await asyncio.sleep(0.2)


def is_within(after: Usage, before: Usage) -> bool:
    """Whether restarts left nothing behind. The last operators, of about 700 objects, may still be referenced."""
    few = before.objects + 70 * RESTARTS
    same = after.tasks <= before.tasks and after.threads <= before.threads
    return same and after.files <= before.files + 2 and after.objects <= few


def test_restarts_leave_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MIN_BACKOFF", 0.001)
    # pytest keeps every record.
    monkeypatch.setattr(module.log, "disabled", True)
    usage: list[Usage] = []
    watching = serve(*ENDS * (WARM_UP // 4), SEEN, *ENDS * (RESTARTS // 4), SEEN)
    watching.max_backoff = 0.001

    async def measure() -> None:
        for count in (1, 2):
            await until(lambda count=count: watching.events.count(("memcacheds", "updated", "seen")) == count)
            watching.server.forget()
            await ended(usage[:1])
            usage.append(Usage.now())
            watching.server.end_watches()

    asyncio.run(watching.during(measure))
    before, after = usage
    assert is_within(after, before), usage


def remaining_tasks() -> list[str]:
    """The tasks of this event loop that still run, without the current one."""
    return [repr(task) for task in asyncio.all_tasks() if task is not asyncio.current_task()]


def test_a_stop_during_a_burst_of_events_is_quick_and_silent(caplog: pytest.LogCaptureFixture) -> None:
    burst = Watch(lines=tuple(line("ADDED", 200 + number, f"a{number}") for number in range(1000)), open=True)

    async def run(events: int) -> None:
        watching = serve(burst)
        await watching.during(lambda: until(lambda: len(watching.events) > events))
        assert watching.seconds_to_stop < MAX_SECONDS_TO_STOP
        gc.collect()

    for events in range(0, 500, 100):
        asyncio.run(run(events))
    assert not [record for record in caplog.records if record.name != "aiohttp.access"], caplog.text


@pytest.mark.parametrize("discovery", [200, None, 503], ids=["works", "hangs", "fails"])
def test_a_signal_at_any_moment_of_a_start_stops_it(discovery: int | None) -> None:
    async def start_and_stop(steps: int) -> None:
        watching = serve(Watch(403), SEEN, discovery=discovery)

        async def send() -> None:
            stop_on_signals(watching.stop)
            for _ in range(steps):
                await asyncio.sleep(0)
            os.kill(os.getpid(), signal.SIGTERM)
            await watching.stop.wait()

        await watching.during(send)
        assert watching.seconds_to_stop < MAX_SECONDS_TO_STOP
        async with asyncio.timeout(MAX_DURATION):
            await until(lambda: not remaining_tasks())

    async def run() -> None:
        for steps in (*range(0, 60, 5), 100, 200, 400):
            await start_and_stop(steps)

    asyncio.run(run())


def test_signal_handlers_are_restored_after_each_start() -> None:
    async def run() -> None:
        watching = serve(Watch(403), Watch(404), Watch(410), FOREVER)

        async def send() -> None:
            await until(lambda: len(watching.server.times["memcacheds"]) == 4)
            assert watching.signal_handlers == 4
            os.kill(os.getpid(), signal.SIGINT)
            await watching.stop.wait()

        await watching.during(send)

    asyncio.run(run())
