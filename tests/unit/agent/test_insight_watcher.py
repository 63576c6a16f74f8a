"""The watcher of evictions: its connection, its windows, and its metrics."""

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from itertools import count

import pytest

from memcached_agent.addresses import Address
from memcached_agent.insight import schedule, stream
from memcached_agent.insight.counters import Counters, chunks, counters
from memcached_agent.insight.insight import Insight
from memcached_agent.insight.window import MAX_RATE, Window
from memcached_agent.memcached.client import MemcachedClient
from memcached_agent.memcached.login import REQUIRED, User
from memcached_agent.memcached.stats import Statistics
from memcached_agent.metrics.exposition import render

from .evicting import CHUNKS, eviction, store
from .memcacheds import CLOSE, HANG, FakeMemcached
from .samples import reference, replies, samples, value
from .test_insight_window import BEGIN, lines

WATCH = "watch evictions mutations"
GETS = 1000
"""Gets between two samples of the counters; a fifth of them are misses."""


def counting(memory: int = 40000) -> Callable[[str], bytes | None]:
    """Replies to `stats` whose counters grow. `memory`: the limit in bytes."""
    numbers = count(1)

    def answer(command: str) -> bytes | None:
        if command != "stats":
            return None
        number = next(numbers)
        text = replies()["stats"].decode()
        for name, each in (
            ("cmd_get", GETS),
            ("get_hits", GETS * 4 // 5),
            ("get_misses", GETS // 5),
            ("evictions", GETS // 5),
        ):
            text = re.sub(rf"STAT {name} \d+", f"STAT {name} {number * each}", text)
        return re.sub(r"STAT limit_maxbytes \d+", f"STAT limit_maxbytes {memory}", text).encode()

    return answer


LONG_ENOUGH = schedule.PATIENCE * schedule.MIN_WINDOW - 1
"""Seconds after which a window is over that has enough lines, and no other."""


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


Users = Callable[[], Sequence[User]]
Scenario = Callable[[FakeMemcached, Insight, Clock], Awaitable[None]]


def run(scenario: Scenario, server: FakeMemcached, users: Users | None = None) -> None:
    """Run a scenario with an agent that watches the server."""

    async def main() -> None:
        clock, address = Clock(), Address("127.0.0.1", server.port)
        client = MemcachedClient(address, users)
        insight = Insight(client, address, users, clock, check=0.01, retry=0.02, poll=0.02)
        async with server.running():
            tasks = [asyncio.create_task(part.run()) for part in (client, insight)]
            try:
                await asyncio.wait_for(scenario(server, insight, clock), 60)
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    asyncio.run(main())


def text(insight: Insight) -> str:
    """The metrics."""
    return render(insight.metrics()).decode()


async def until(insight: Insight, quality: str) -> None:
    """Wait until the last window has this quality."""
    name = ("memcached_agent_insight_quality", frozenset({("quality", quality)}))
    while samples(text(insight)).get(name) != 1:  # noqa: ASYNC110 - changed by sockets
        await asyncio.sleep(0.005)


async def until_watched(server: FakeMemcached, times: int = 1) -> None:
    """Wait until the server has got so many watchers."""
    while server.commands.count(WATCH) < times:  # noqa: ASYNC110 - changed by sockets
        await asyncio.sleep(0.005)


def watched(*sent: bytes) -> FakeMemcached:
    """A server that sends these lines to its watcher."""
    server = FakeMemcached(answer=counting())
    server.replies[WATCH] = b"".join([b"OK\r\n", *(line + b"\n" for line in sent)])
    return server


def lines_of(gid: int) -> tuple[bytes, bytes]:
    """An item that is evicted, and another one that is stored."""
    return eviction(gid, gid), store(gid, f"new{gid}")


HITS = [line for gid in range(5000) for line in (*lines_of(gid), eviction(gid, "b"), store(gid, "b"))]
"""Lines of a window with predictions."""


def test_window_is_published_with_its_age() -> None:
    async def scenario(server: FakeMemcached, insight: Insight, clock: Clock) -> None:
        await until_watched(server)
        clock.now += LONG_ENOUGH
        await until(insight, "good")
        clock.now += 7
        found = text(insight)
        assert value(found, "memcached_agent_insight_age_seconds") == 7
        assert value(found, "memcached_agent_insight_window_seconds") == LONG_ENOUGH
        assert value(found, "memcached_agent_predicted_hit_ratio", memory="1") == 0.8
        assert value(found, "memcached_agent_predicted_hit_ratio", memory="2") == pytest.approx(1.0)
        assert value(found, "memcached_agent_predicted_memory_bytes", memory="2") == 80_000
        assert value(found, "memcached_agent_predicted_hit_ratio_cliff", memory="4") == 0

    run(scenario, watched(*HITS))


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What the insight has logged."""
    return [each.getMessage() for each in caplog.records if each.name.startswith("memcached_agent.insight")]


UNAVAILABLE = [
    pytest.param(b"CLIENT_ERROR watch commands not allowed\r\n", "does not let the agent watch", id="--disable-watch"),
    pytest.param(b"ERROR Too many open connections\r\n", "connection", id="connection limit"),
    pytest.param(b"hello\r\n", "invalid reply to `watch`", id="another server"),
    pytest.param(CLOSE, "closed the connection", id="closed"),
    pytest.param(HANG, "did not accept a watcher", id="no reply"),
    pytest.param(b"OK\r\nts=1.2 gid=x key=secret\n", "invalid line", id="invalid line"),
    pytest.param(b"OK\r\n" + b"secret" * 1000, "line that is too long", id="long line"),
]


@pytest.mark.parametrize(("reply", "reason"), UNAVAILABLE)
def test_watcher_that_is_not_possible(
    reply: bytes | None, reason: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has one line with the reason, and no key. The connection of the metrics stays open."""
    monkeypatch.setattr(stream, "REPLY_TIMEOUT", 0.3)

    async def scenario(server: FakeMemcached, insight: Insight, _: Clock) -> None:
        await until_watched(server, 3)
        await until(insight, "unavailable")
        assert server.commands.count("version") == 1

    server = watched()
    server.replies[WATCH] = reply
    with caplog.at_level(logging.INFO):
        run(scenario, server)
    warnings = messages(caplog)
    assert len(warnings) == 1
    assert reason in warnings[0]
    assert "secret" not in caplog.text


def test_internal_error_does_not_end_the_agent(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log has one line for it, and the agent tries again."""
    errors = [ZeroDivisionError()] * 3

    def broken(found: Statistics) -> Counters:
        if errors:
            raise errors.pop()
        return counters(found)

    async def scenario(server: FakeMemcached, insight: Insight, _: Clock) -> None:
        await until(insight, "unavailable")
        await until_watched(server)

    monkeypatch.setattr("memcached_agent.insight.insight.counters", broken)
    with caplog.at_level(logging.WARNING):
        run(scenario, watched())
    assert messages(caplog) == ["no prediction of hit ratios: internal error"]


def pausing(length: float) -> Callable[[Window, float], float]:
    """Pauses of so many seconds after every window."""

    def pause(window: Window, seconds: float) -> float:
        del window, seconds
        return length

    return pause


def test_predictions_stay_after_a_window_without_any(monkeypatch: pytest.MonkeyPatch) -> None:
    """The statistics of memcached are reset in the second window."""
    server = watched(*HITS)

    async def after_window(insight: Insight, clock: Clock, number: int, quality: str) -> str:
        await until_watched(server, number)
        server.answer = counting() if quality == "changed" else server.answer
        clock.now += LONG_ENOUGH
        await until(insight, quality)
        return text(insight)

    monkeypatch.setattr(schedule, "pause", pausing(0.0))
    monkeypatch.setattr(schedule, "MIN_PAUSE", 0.0)

    async def scenario(_: FakeMemcached, insight: Insight, clock: Clock) -> None:
        good = await after_window(insight, clock, 1, "good")
        changed = samples(await after_window(insight, clock, 2, "changed"))
        age = ("memcached_agent_insight_age_seconds", frozenset[tuple[str, str]]())
        assert changed[age] == LONG_ENOUGH
        kept = {name: number for name, number in samples(good).items() if "predicted" in name[0]}
        assert kept.items() <= changed.items()
        assert value(await after_window(insight, clock, 3, "good"), age[0]) == 0

    run(scenario, server)


@pytest.mark.parametrize("seconds", [0.0, 3600.0], ids=["during a window", "during a pause"])
def test_predictions_for_another_memory_are_dropped(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next window starts soon, although the pause is long."""
    monkeypatch.setattr(schedule, "pause", pausing(seconds))
    monkeypatch.setattr(schedule, "MIN_PAUSE", 0.0)

    async def scenario(server: FakeMemcached, insight: Insight, clock: Clock) -> None:
        await until_watched(server)
        clock.now += LONG_ENOUGH
        await until(insight, "good")
        await until_watched(server, 1 if seconds else 2)
        server.answer = counting(80_000)
        if not seconds:
            clock.now += LONG_ENOUGH
            await until(insight, "changed")
        while "predicted" in text(insight):  # noqa: ASYNC110 - changed by sockets
            await asyncio.sleep(0.005)
        await until_watched(server, 3 if not seconds else 2)
        clock.now += LONG_ENOUGH
        while "predicted" not in text(insight):  # noqa: ASYNC110 - changed by sockets
            await asyncio.sleep(0.005)
        assert value(text(insight), "memcached_agent_predicted_memory_bytes", memory="1") == 80_000

    run(scenario, watched(*HITS))


def test_watcher_logs_in() -> None:
    async def scenario(server: FakeMemcached, insight: Insight, _: Clock) -> None:
        await until_watched(server)
        assert server.commands.count("get memcached-agent") == 2
        assert server.commands[-1] == WATCH

    server = watched()
    server.replies |= {"get memcached-agent": REQUIRED, "set auth 0 0 3": b"", "a b": b"STORED\r\n"}
    run(scenario, server, lambda: [User(b"a", b"b")])


def test_sample_of_the_statistics() -> None:
    """The figures of exporter/stats.txt."""
    found, sizes = counters(reference()), chunks(reference())
    general = reference().general
    assert (found.gets, found.memory) == (int(general["cmd_get"]) + 1, int(general["limit_maxbytes"])), "and a touch"
    assert (found.hits, found.touches) == (int(general["get_hits"]) + 1, 1)
    assert 0 <= found.cold_share <= 1
    assert 0.5 < sizes.usable <= 1
    slab, size = next(iter(sizes.sizes.items()))
    assert sizes.needed(slab, 1) == size
    assert sizes.needed(slab, 10 * size) > 10 * size, "an item that is larger than a chunk has several"


def window(number: int, *, evictions: int = 1, complete: bool = False, age: int = 60) -> Window:
    """A window with so many lines."""
    found = Window(BEGIN._replace(age=age), CHUNKS)
    if complete:
        found.feed(lines(10_000))
    found.lines, found.evictions = number, evictions
    return found


SCHEDULE: list[tuple[str, Window, float, bool]] = [
    ("too short", window(10**5, complete=True), 119, False),
    ("twice the age", window(10**5, complete=True), 120, True),
    ("young items: a minute", window(10**5, complete=True, age=3), 60, True),
    ("not complete", window(10**5), 120, False),
    ("no patience left", window(10**5), 960, True),
    ("old items", window(10**5, age=10**6), schedule.MAX_WINDOW - 1, False),
    ("at most six hours", window(10**5, age=10**6), schedule.MAX_WINDOW, True),
    ("busy, but for a moment", window(9 * MAX_RATE + 1), 9, False),
    ("busy", window(10 * MAX_RATE + 1), 10, True),
    ("no evictions yet", window(0, evictions=0), 299, False),
    ("idle", window(0, evictions=0, age=10**6), 300, True),
]


@pytest.mark.parametrize(("found", "seconds", "over"), [each[1:] for each in SCHEDULE], ids=[e[0] for e in SCHEDULE])
def test_end_of_a_window(found: Window, seconds: float, *, over: bool) -> None:
    assert schedule.is_over(found, seconds) == over


@pytest.mark.parametrize(
    ("number", "seconds", "pause"),
    [
        pytest.param(10**6, 60, 1140, id="watched for a twentieth of the time"),
        pytest.param(1200, 60, 1140, id="just enough lines for that"),
        pytest.param(120, 60, 114, id="a tenth of these lines"),
        pytest.param(0, 300, 10, id="idle"),
    ],
)
def test_pause_limits_the_average_cost(number: int, seconds: float, pause: float) -> None:
    assert schedule.pause(window(number), seconds) == pause
