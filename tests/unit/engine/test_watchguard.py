import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise

import aiohttp
import pytest

from memcached_operator.engine import metrics, watchguard
from memcached_operator.engine.watchguard import WatchGuard
from unit.servers import Script, answer, connection, serving

PAUSE = 0.02
LIST = "/api/v1/pods"
WATCH = f"{LIST}?watch=true&resourceVersion=7"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pauses of a test's size."""
    monkeypatch.setattr(watchguard, "FIRST_PAUSE", PAUSE)
    monkeypatch.setattr(watchguard, "LAST_PAUSE", 8 * PAUSE)


@asynccontextmanager
async def guarded(script: Script) -> AsyncGenerator[tuple[aiohttp.ClientSession, str]]:
    """A session behind a guard, and the server's address."""
    async with serving(script) as there, there.session([WatchGuard()]) as session, asyncio.timeout(10):
        yield session, there.server


def get(script: Script, path: str) -> int:
    """The status that comes through the guard at last."""

    async def run() -> int:
        async with guarded(script) as (session, server), session.get(server + path) as response:
            return response.status

    return asyncio.run(run())


def gaps(script: Script) -> list[float]:
    """Seconds between the requests."""
    return [later - earlier for earlier, later in pairwise(script.times)]


@pytest.mark.parametrize("status", [403, 404, 410, 429, 500, 503])
@pytest.mark.parametrize("path", [LIST, WATCH], ids=["list", "watch"])
def test_no_refusal_comes_through(status: int, path: str) -> None:
    script = Script([answer(status), answer(status), answer(200)])
    assert get(script, path) == 200
    assert len(script.requests) == 3


def test_pauses_double_up_to_the_last_one() -> None:
    script = Script([answer(500)] * 6 + [answer(200)])
    get(script, LIST)
    expected = [PAUSE, 2 * PAUSE, 4 * PAUSE, 8 * PAUSE, 8 * PAUSE, 8 * PAUSE]
    assert all(gap >= 0.9 * pause for gap, pause in zip(gaps(script), expected, strict=True))
    assert sum(gaps(script)) < 1.1 * sum(expected) + 0.5


def test_retry_after_is_obeyed() -> None:
    script = Script([answer(429, Retry_After="1"), answer(200)])
    assert get(script, LIST) == 200
    assert 0.9 <= gaps(script)[0] < 2


def test_a_retry_after_that_is_no_number_is_passed_over() -> None:
    script = Script([answer(429, Retry_After="Fri, 31 Dec 1999 23:59:59 GMT"), answer(200)])
    assert get(script, LIST) == 200
    assert gaps(script)[0] < 1


def test_a_watch_from_a_version_that_is_too_old_begins_anew() -> None:
    script = Script([answer(410), answer(200)])
    get(script, WATCH)
    assert [dict(request.query) for request in script.requests] == [
        {"watch": "true", "resourceVersion": "7"},
        {"watch": "true"},
    ]


def test_a_watch_that_fails_otherwise_goes_on_from_its_version() -> None:
    script = Script([answer(500), answer(200)])
    get(script, WATCH)
    assert [request.query["resourceVersion"] for request in script.requests] == ["7", "7"]


def test_a_watch_that_is_closed_at_once_is_paced() -> None:
    script = Script([answer(200)])

    async def run() -> None:
        async with guarded(script) as (session, server), asyncio.timeout(0.5):
            while True:
                async with session.get(server + WATCH) as response:
                    await response.read()

    with pytest.raises(TimeoutError):
        asyncio.run(run())
    assert 3 <= len(script.requests) <= 8


def test_a_watch_that_lived_long_is_followed_by_the_next_without_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchguard, "SHORT", 0)
    monkeypatch.setattr(watchguard, "FIRST_PAUSE", 60)
    script = Script([answer(200)])

    async def run() -> None:
        async with guarded(script) as (session, server):
            for _ in range(3):
                async with session.get(server + WATCH) as response:
                    await response.read()

    asyncio.run(run())
    assert len(script.requests) == 3


def test_lists_watches_and_resources_do_not_hold_up_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watchguard, "FIRST_PAUSE", 60)
    script = Script([answer(200)])

    async def run() -> None:
        async with guarded(script) as (session, server):
            for path in (LIST, WATCH, "/api/v1/services", "/api/v1/services?watch=true"):
                async with session.get(server + path) as response:
                    await response.read()

    asyncio.run(run())
    assert len(script.requests) == 4


def test_a_server_that_is_away_is_waited_for() -> None:
    async def run() -> int:
        async with serving(Script([answer(200)])) as there:
            port = int(there.server.rpartition(":")[2])
        gone = connection(f"http://127.0.0.1:{port}")
        async with gone.session([WatchGuard()]) as session, asyncio.timeout(10):
            waiting = asyncio.create_task(session.get(gone.server + LIST))
            await asyncio.sleep(3 * PAUSE)
            assert not waiting.done()
            async with serving(Script([answer(200)]), port):
                response = await waiting
                response.release()
                return response.status

    assert asyncio.run(run()) == 200


def test_every_retry_is_counted_by_resource_and_reason() -> None:
    get(Script([answer(503), answer(503), answer(200)]), "/apis/x/v1/gadgets")
    labels = {"resource": "gadgets", "reason": "503"}
    assert metrics.REGISTRY.get_sample_value("memcached_operator_watch_retries_total", labels) == 2
