"""When the Events about late objects are read, and what of them is kept."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from datetime import datetime
from typing import Any, cast

import pytest

from memcached_operator.engine.events.reader import (
    KEEP_PERIOD,
    MAX_EVENTS,
    PAUSE,
    Causes,
)
from memcached_operator.findings.event_reads import MAX_PODS, RUNNING_PERIOD, VOLUME_PERIOD
from memcached_operator.findings.volumes.mounts import READ_PERIOD
from memcached_operator.kube.client import ApiClient, ApiError, Page
from memcached_operator.kube.resource import EVENTS, Key, Object, Resource
from memcached_operator.world.snapshot import Messages
from support.stores import whole_store
from unit.builders import MEMCACHEDS, NOW, memcached, pod, snapshot_of
from unit.findings.test_mounts import event, messages, running, stuck

KEY = Key(MEMCACHEDS, "test", "cache")
FORBIDDEN = ApiError(403, "Forbidden", "events is forbidden")
BUSY = ApiError(429, "TooManyRequests", "later", retry_after=90)
REPORTED: Object = {"conditions": [{"type": "Degraded", "status": "True", "reason": "SecretUnavailable"}]}


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop with a clock that tests move."""

    now = 1000.0

    def time(self) -> float:
        """Seconds of the virtual clock."""
        return self.now


class Clock:
    """The time of these tests."""

    @staticmethod
    def now(_: Any) -> datetime:
        """The time."""
        return NOW


class World:
    """An API server with Events, and the reads of Events."""

    def __init__(self) -> None:
        self.events: list[Object] = [event()]
        self.error: Exception | None = None
        self.hangs = False
        self.gate: asyncio.Event | None = None  # for which each list waits
        self.pages = [1000]  # bytes of each page, which has all Events
        self.reads: list[tuple[Resource, str | None, str, int]] = []
        self.changed: Counter[Key] = Counter()
        self.on_change: Callable[[], Any] = lambda: None
        self.cache = whole_store()
        self.causes = Causes(cast("ApiClient", self), self.cache, self._on_change)

    def _on_change(self, key: Key) -> None:
        self.changed.update([key])
        self.on_change()

    async def list(
        self, resource: Resource, namespace: str | None, selector: str = "", *, fields: str = "", limit: int = 0
    ) -> AsyncGenerator[Page]:
        """The Events, or the error."""
        self.reads.append((resource, namespace, selector + fields, limit))
        if self.hangs:
            await asyncio.Event().wait()
        if self.gate is not None:
            await self.gate.wait()
        if self.error is not None:
            raise self.error
        for size in self.pages:
            yield Page(iter(self.events), len(self.events), size, "1")

    def reconcile(self, *pods: Object, key: Key = KEY, **cr: Any) -> Messages:
        """What a reconcile does: it gets the known messages."""
        return self.causes.add_to(snapshot_of({**memcached(key.name), **cr}, pods=pods), key, NOW).messages

    async def pass_time(self, seconds: float) -> None:
        """Move the clock, and let everything happen that is due."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        loop.now += seconds
        for _ in range(20):
            await asyncio.sleep(0)


def run(scenario: Callable[[World], Any], make: Callable[[], World] = World) -> None:
    """Run a scenario while the readers run. The Events of these tests are recent."""

    async def main() -> None:
        world = make()
        task = asyncio.create_task(world.causes.run())
        await scenario(world)
        assert not task.done(), task.exception()
        task.cancel()

    with asyncio.Runner(loop_factory=VirtualLoop) as runner, pytest.MonkeyPatch.context() as patch:
        for module in ("reader", "controller_retries"):
            patch.setattr(f"memcached_operator.engine.events.{module}.datetime", Clock)
        runner.run(main())


def test_events_of_a_waiting_pod_are_read_once_per_minute() -> None:
    async def scenario(world: World) -> None:
        assert world.reconcile(stuck()) == {}
        await world.pass_time(0)
        assert world.reads == [
            (EVENTS, "test", "involvedObject.uid=sessions-0,source=kubelet,type=Warning", MAX_EVENTS),
        ]
        assert world.changed == {KEY: 1}
        for _ in range(5):
            assert world.reconcile(stuck()) == messages(event())
            await world.pass_time(READ_PERIOD / 6)
        assert len(world.reads) == 1
        await world.pass_time(READ_PERIOD / 6)
        assert len(world.reads) == 2
        # Without a reconcile, too.
        await world.pass_time(READ_PERIOD)
        assert len(world.reads) == 3
        assert world.changed == {KEY: 1}

    run(scenario)


def test_changed_events_are_reported() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(stuck())
        await world.pass_time(0)
        world.events = [event(seen=1)]
        await world.pass_time(READ_PERIOD)
        assert world.changed == {KEY: 2}
        assert world.reconcile(stuck()) == messages(event(seen=1))

    run(scenario)


def test_normal_start_reads_nothing() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(stuck(since=1))
        await world.pass_time(VOLUME_PERIOD - 2)
        world.reconcile(running())
        await world.pass_time(RUNNING_PERIOD / 2)
        assert world.reads == []

    run(scenario)


def test_pod_that_keeps_waiting_is_read_without_another_reconcile() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(stuck(since=1))
        await world.pass_time(VOLUME_PERIOD - 1)
        assert len(world.reads) == 1

    run(scenario)


def test_timer_of_an_earlier_pod_does_not_cause_an_early_read() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(stuck("sessions-0", since=9))
        world.reconcile(stuck("sessions-1", since=1))
        await world.pass_time(VOLUME_PERIOD - 9)
        assert world.reads == []
        await world.pass_time(VOLUME_PERIOD)
        assert "sessions-1" in world.reads[0][2]

    run(scenario)


def test_running_pods_are_read_only_by_a_reconcile_after_the_period() -> None:
    """Neither a start of the controller nor the passing of time causes a read."""

    async def scenario(world: World) -> None:
        world.events = []
        for seconds in (RUNNING_PERIOD - 1, 10 * RUNNING_PERIOD):
            world.reconcile(running())
            await world.pass_time(seconds)
            assert world.reads == []
        for expected in (1, 2):
            for _ in range(9):
                world.reconcile(running())
                await world.pass_time(RUNNING_PERIOD / 10)
                assert len(world.reads) == expected
            for _ in range(9):
                await world.pass_time(RUNNING_PERIOD)
            assert len(world.reads) == expected

    run(scenario)


def test_timer_of_a_waiting_pod_causes_no_read_after_its_start() -> None:
    async def scenario(world: World) -> None:
        world.events = []
        world.reconcile(stuck())
        await world.pass_time(0)
        world.reconcile(running())
        for _ in range(9):
            await world.pass_time(RUNNING_PERIOD)
        assert len(world.reads) == 1

    run(scenario)


def test_pod_that_starts_to_wait_during_a_read_is_read_soon() -> None:
    async def scenario(world: World) -> None:
        world.events = []
        original = world.list

        async def list_while_a_pod_is_replaced(*arguments: Any, **options: Any) -> AsyncGenerator[Page]:
            world.reconcile(stuck("sessions-1"))
            async for page in original(*arguments, **options):
                yield page

        world.reconcile(running())
        await world.pass_time(RUNNING_PERIOD)
        world.list = list_while_a_pod_is_replaced
        world.reconcile(running())
        await world.pass_time(0)
        world.list = original
        await world.pass_time(PAUSE)
        assert len(world.reads) == 2
        assert "sessions-1" in world.reads[1][2]

    run(scenario)


def test_deleted_and_healthy_objects_are_not_read() -> None:
    async def scenario(world: World) -> None:
        world.reconcile()
        world.reconcile(stuck(since=9))
        world.causes.forget(KEY)
        await world.pass_time(READ_PERIOD)
        world.reconcile(stuck(since=9))
        world.reconcile()
        await world.pass_time(READ_PERIOD)
        assert world.reads == []

    run(scenario)


def test_limit_of_the_rate_holds_for_replaced_pods() -> None:
    async def scenario(world: World) -> None:
        for number in range(60):
            world.reconcile(stuck(f"sessions-{number}"))
            await world.pass_time(1)
            world.reconcile()
        assert len(world.reads) == 60 / PAUSE

    run(scenario)


def test_status_that_reports_a_missing_secret_is_held_until_the_first_read() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(running(), status=REPORTED)
        assert world.causes.delays_status(KEY)
        await world.pass_time(0)
        assert world.changed == {KEY: 1}
        world.reconcile(running(), status=REPORTED)
        assert not world.causes.delays_status(KEY)

    run(scenario)


@pytest.mark.parametrize("error", [FORBIDDEN, BUSY])
def test_failed_read_releases_a_held_status(error: ApiError) -> None:
    async def scenario(world: World) -> None:
        world.error = error
        assert world.reconcile(stuck(), status=REPORTED) == {}
        assert world.causes.delays_status(KEY)
        await world.pass_time(0)
        assert world.changed == {KEY: 1}
        assert world.reconcile(stuck(), status=REPORTED) == {}
        assert not world.causes.delays_status(KEY)

    run(scenario)


def test_unexpected_error_of_one_object_is_retried_with_a_backoff_and_does_not_stop_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario(world: World) -> None:
        pods = stuck(), stuck("sessions-1")
        world.error = ValueError("defect")
        world.on_change = lambda: world.reconcile(*pods, status=REPORTED)
        world.on_change()
        await world.pass_time(0)
        assert len(world.reads) == 1
        assert not world.causes.delays_status(KEY)
        await world.pass_time(PAUSE)
        assert ["sessions-1" in fields for _, _, fields, _ in world.reads] == [False, True]
        for _ in range(60):
            await world.pass_time(10)
            assert not world.causes.delays_status(KEY)
        assert 10 <= len(world.reads) <= 25
        assert world.changed == {KEY: len(world.reads)}
        world.error, world.on_change = None, lambda: None
        other = Key(MEMCACHEDS, "test", "other")
        world.reconcile(stuck(), key=other)
        await world.pass_time(2 * READ_PERIOD)
        assert world.changed[other] == 1
        assert world.reconcile(stuck()) == messages(event())

    run(scenario)
    assert "Memcached test/cache: unexpected error in causes, please report it; retrying in" in caplog.text


def test_unexpected_error_about_one_pod_does_not_prevent_the_reads_about_the_others() -> None:
    async def scenario(world: World) -> None:
        original = world.list

        async def list_with_a_defect(*arguments: Any, **options: Any) -> AsyncGenerator[Page]:
            if "sessions-0" in options["fields"]:
                raise ValueError
            async for page in original(*arguments, **options):
                yield page

        world.list = list_with_a_defect
        world.reconcile(stuck(), stuck("sessions-1"))
        await world.pass_time(0)
        await world.pass_time(PAUSE)
        assert [*world.reconcile(stuck(), stuck("sessions-1"))] == ["sessions-1"]

    run(scenario)


def test_status_is_held_for_a_new_pod_until_the_pause_ends() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(stuck(), status=REPORTED)
        await world.pass_time(0)
        world.reconcile(stuck("sessions-1"), status=REPORTED)
        assert world.causes.delays_status(KEY)
        await world.pass_time(PAUSE - 1)
        assert len(world.reads) == 1
        assert world.causes.delays_status(KEY)
        await world.pass_time(1)
        assert world.changed == {KEY: 2}
        assert not world.causes.delays_status(KEY)

    run(scenario)


def test_error_releases_the_statuses_that_wait_for_other_pods() -> None:
    async def scenario(world: World) -> None:
        pods = stuck(), stuck("sessions-1")
        world.reconcile(*pods[:1], status=REPORTED)
        await world.pass_time(0)
        world.error = BUSY
        await world.pass_time(READ_PERIOD - 1)
        world.reconcile(*pods, status=REPORTED)
        await world.pass_time(0)
        assert world.changed == {KEY: 2}
        world.reconcile(*pods, stuck("sessions-2"), status=REPORTED)
        assert not world.causes.delays_status(KEY)

    run(scenario)


def test_messages_are_kept_for_a_while_while_the_pod_exists() -> None:
    async def scenario(world: World) -> None:
        healthy = pod("sessions-0")
        world.reconcile(stuck())
        await world.pass_time(0)
        assert world.reconcile(healthy)
        assert not world.reconcile()
        world.reconcile(stuck())
        await world.pass_time(PAUSE)
        await world.pass_time(KEEP_PERIOD - 1)
        assert world.reconcile(stuck())
        reads = len(world.reads)
        await world.pass_time(KEEP_PERIOD - 1)
        assert len(world.reads) == reads + 1
        assert world.reconcile(healthy)
        await world.pass_time(KEEP_PERIOD)
        assert not world.reconcile(healthy)
        await world.pass_time(9 * KEEP_PERIOD)
        assert len(world.reads) == reads + 1

    run(scenario)


def test_number_of_pods_whose_messages_are_kept_is_limited() -> None:
    async def scenario(world: World) -> None:
        names = [f"sessions-{number}" for number in range(9)]
        healthy = [pod(name) for name in names]
        for number, name in enumerate(names):
            world.reconcile(stuck(name), *(healthy[:number]))
            await world.pass_time(0)
            await world.pass_time(PAUSE)
        assert [*world.reconcile(*healthy)] == names[-MAX_PODS:]

    run(scenario)


def test_other_statuses_are_not_held() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(stuck())
        assert not world.causes.delays_status(KEY)
        assert not world.causes.delays_status(Key(MEMCACHEDS, "test", "other"))

    run(scenario)


def test_known_events_are_kept_if_a_read_fails() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(stuck())
        await world.pass_time(0)
        world.error = BUSY
        await world.pass_time(READ_PERIOD)
        assert world.reconcile(stuck()) == messages(event())

    run(scenario)


def test_retry_after_is_respected() -> None:
    async def scenario(world: World) -> None:
        world.error = BUSY
        world.reconcile(stuck())
        await world.pass_time(0)
        world.error = None
        world.reconcile(stuck(), stuck("sessions-1"))
        await world.pass_time(READ_PERIOD)
        assert len(world.reads) == 1
        await world.pass_time(30)
        assert len(world.reads) == 3

    run(scenario)


def test_missing_permission_is_logged_once_per_namespace(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        world.error = FORBIDDEN
        for name in ("a", "b"):
            world.reconcile(stuck(), key=Key(MEMCACHEDS, "test", name))
        await world.pass_time(0)
        await world.pass_time(READ_PERIOD)
        assert len(world.reads) == 4

    run(scenario)
    messages = [record.message for record in caplog.records if record.levelno >= logging.WARNING]
    assert messages == ["cannot list Events in namespace 'test', so the causes are not reported: events is forbidden"]


def test_other_errors_are_logged_with_the_object(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        world.error = BUSY
        world.reconcile(stuck())
        await world.pass_time(0)

    run(scenario)
    assert "Memcached test/cache: cannot list the Events of its pods: later" in caplog.text


def test_response_that_never_arrives_does_not_block_a_reconcile_or_another_namespace() -> None:
    async def scenario(world: World) -> None:
        world.hangs = True
        world.reconcile(stuck())
        await world.pass_time(0)
        world.hangs = False
        other = Key(MEMCACHEDS, "elsewhere", "other")
        world.reconcile(stuck("sessions-1"), key=other)
        world.events = [event(uid="sessions-1")]
        await world.pass_time(0)
        assert world.reconcile(stuck("sessions-1"), key=other) == messages(event(uid="sessions-1"))

    run(scenario)


def test_object_deleted_during_a_read_is_not_enqueued() -> None:
    async def scenario(world: World) -> None:
        world.reconcile(stuck())
        original, causes = world.list, world.causes

        async def list_and_forget(*arguments: Any, **options: Any) -> AsyncGenerator[Page]:
            causes.forget(KEY)
            async for page in original(*arguments, **options):
                yield page

        world.list = list_and_forget
        await world.pass_time(0)
        assert len(world.reads) == 1
        assert world.changed == {}

    run(scenario)
