"""When the cause of missing pods is read, and when a workload's controller is made to try again."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest

from memcached_api.annotations import RETRY_ANNOTATION
from memcached_operator.engine.events.controller_retries import RETRY_MANAGER
from memcached_operator.engine.events.reader import MAX_EVENTS
from memcached_operator.engine.writes.ownership import annotation_patch, controller_reference
from memcached_operator.findings.creation import MAX_PERIOD, RETRY_PERIOD
from memcached_operator.findings.event_reads import CREATION_PERIOD
from memcached_operator.kube.client import JSON_PATCH, ApiError, Page
from memcached_operator.kube.resource import EVENTS, PODS, STATEFULSETS, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from unit.builders import NOW, memcached, pod, snapshot_of
from unit.engine.test_causes import KEY, World, run
from unit.findings.test_creation import SLOTS, not_deleted, of_slot, statefulset

FIELDS = "involvedObject.uid=child,type=Warning"
REPORTED: Object = {"conditions": [{"type": "Degraded", "status": "True", "reason": "ApplyFailed"}]}


class Creating(World):
    """An API server with Events and pods, which records the reads and the changes of a StatefulSet."""

    def __init__(self) -> None:
        super().__init__()
        self.events = [of_slot(0)]
        self.pods: list[Object] = []
        self.patches: list[Any] = []
        self.patch_error: ApiError | None = None
        self.cache.put(MEMCACHEDS, memcached("cache"))
        self.cache.put(STATEFULSETS, statefulset(1))

    async def list(
        self, resource: Resource, namespace: str | None, selector: str = "", *, fields: str = "", limit: int = 0
    ) -> AsyncGenerator[Page]:
        """The Events, or the pods."""
        if resource == EVENTS:
            async for page in super().list(resource, namespace, selector, fields=fields, limit=limit):
                yield page
            return
        self.reads.append((resource, namespace, fields, limit))
        yield Page(iter(self.pods), len(self.pods), 1000, "1")

    async def request(self, method: str, path: str, body: Any, content_type: str, params: Mapping[str, str]) -> Object:
        """Change the StatefulSet."""
        self.patches.append((method, path, body, content_type, params))
        if self.patch_error:
            raise self.patch_error
        return statefulset(resourceVersion="99")

    def see(self, *pods: Object, live: Object | None = None, **cr: Any) -> tuple[str, ...]:
        """What a reconcile does: it gets what is known. Returns messages, and the names of pods."""
        snapshot = snapshot_of({**memcached("cache"), **cr}, {SLOTS: live or statefulset(1)}, pods)
        found = self.causes.add_to(snapshot, KEY, NOW)
        names = [each["metadata"]["name"] for each in found.taken]
        return (*(each.text for each in found.messages.get("child", ())), *names)

    @property
    def event_reads(self) -> int:
        """The number of lists of Events."""
        return sum(resource == EVENTS for resource, *_ in self.reads)


def scenario(body: Any) -> None:
    """Run a scenario while the readers run."""
    run(body, Creating)


def test_normal_creation_reads_nothing() -> None:
    async def body(world: Creating) -> None:
        world.see()
        await world.pass_time(CREATION_PERIOD - 1)
        world.see(pod("cache-0"))
        await world.pass_time(100 * RETRY_PERIOD)
        assert (world.reads, world.patches) == ([], [])

    scenario(body)


def test_cause_of_a_missing_pod_is_read_without_another_reconcile() -> None:
    async def body(world: Creating) -> None:
        world.see()
        await world.pass_time(CREATION_PERIOD)
        assert world.reads == [(EVENTS, "test", FIELDS, MAX_EVENTS), (PODS, "test", "metadata.name=cache-0", 1)]
        assert world.changed == {KEY: 1}
        (known,) = world.see()
        assert "exceeded quota" in known
        assert world.patches == []

    scenario(body)


@pytest.mark.parametrize("is_taken", [False, True])
def test_new_workload_is_read_more_often_until_the_cause_is_known(*, is_taken: bool) -> None:
    async def body(world: Creating) -> None:
        events, world.events, times = world.events, [], list[int]()
        world.see()
        for second in range(200):
            if second == 20 and is_taken:
                world.pods = [pod("cache-0")]
            before = world.event_reads
            await world.pass_time(1 if second else 0)
            times += [second] * (world.event_reads - before)
        assert times == ([4, 19, 38, 98, 158] if is_taken else [4, 19, 38, 76, 136, 196])
        world.events = events
        await world.pass_time(RETRY_PERIOD)
        assert world.see()

    scenario(body)


def test_cause_of_a_pod_that_is_not_deleted_is_read() -> None:
    async def body(world: Creating) -> None:
        world.events = [not_deleted()]
        slots = pod("cache-0"), pod("cache-1")
        world.see(*slots)
        await world.pass_time(CREATION_PERIOD)
        assert world.reads == [(EVENTS, "test", FIELDS, MAX_EVENTS)]
        (known,) = world.see(*slots)
        assert "pods are kept" in known
        await world.pass_time(2 * RETRY_PERIOD)
        assert world.patches

    scenario(body)


def test_pod_of_another_owner_is_found() -> None:
    async def body(world: Creating) -> None:
        world.events, world.pods = [], [pod("cache-0")]
        world.see()
        await world.pass_time(CREATION_PERIOD)
        assert world.see() == ("cache-0",)

    scenario(body)


def test_cause_is_forgotten_when_the_pod_exists() -> None:
    """So that it is not reported when the pod is replaced later."""

    async def body(world: Creating) -> None:
        world.see()
        await world.pass_time(CREATION_PERIOD)
        assert world.see()
        assert world.see(pod("cache-0")) == ()
        assert world.see() == ()

    scenario(body)


def test_controller_is_made_to_try_again_once_per_minute_and_later_more_rarely() -> None:
    async def body(world: Creating) -> None:
        world.see()
        for _ in range(int(RETRY_PERIOD) - 1):
            await world.pass_time(1)
        assert world.patches == []
        counts: list[int] = []
        for minutes in (10, 50, 60):
            before = len(world.patches)
            for _ in range(12 * minutes):
                await world.pass_time(5)
            counts.append(len(world.patches) - before)
        first, then, last = counts
        assert 9 <= first <= 10
        assert 15 <= then <= 30
        assert last == 3600 / MAX_PERIOD
        patch = annotation_patch(statefulset(1), RETRY_ANNOTATION, "2030-01-01T12:00:00Z")
        path = STATEFULSETS.path("test", "cache")
        assert world.patches[0] == ("PATCH", path, patch, JSON_PATCH, {"fieldManager": RETRY_MANAGER})
        entry = world.cache.entry(SLOTS)
        assert entry is not None
        assert entry.version == 99, "its event must not cause a reconcile"
        assert len(world.reads) < 150

    scenario(body)


def test_controller_that_has_not_seen_the_spec_is_not_made_to_try_again() -> None:
    """It does not run, or is slow."""

    async def body(world: Creating) -> None:
        world.see(live={**statefulset(1), "status": {}})
        for _ in range(10):
            await world.pass_time(RETRY_PERIOD)
        assert world.event_reads
        assert world.patches == []

    scenario(body)


def test_workload_of_another_owner_is_not_annotated() -> None:
    """Its event has arrived, but no reconcile has seen it."""

    async def body(world: Creating) -> None:
        world.see()
        other = controller_reference({**memcached("cache", uid="other"), "kind": "Other"})
        world.cache.put(STATEFULSETS, statefulset(1, resourceVersion="50", ownerReferences=[other]))
        await world.pass_time(2 * RETRY_PERIOD)
        assert world.event_reads
        assert world.patches == []

    scenario(body)


def test_failed_change_does_not_prevent_the_read(caplog: pytest.LogCaptureFixture) -> None:
    async def body(world: Creating) -> None:
        world.patch_error = ApiError(403, "Forbidden", "statefulsets is forbidden")
        world.see()
        await world.pass_time(2 * RETRY_PERIOD)
        await world.pass_time(2 * RETRY_PERIOD)
        assert world.patches
        assert world.see()

    scenario(body)
    assert "cannot make its controller try again: statefulsets is forbidden" in caplog.text


def test_status_that_reports_the_cause_is_held_until_the_first_read() -> None:
    async def body(world: Creating) -> None:
        world.see(status=REPORTED)
        assert world.causes.delays_status(KEY)
        await world.pass_time(0)
        assert world.see(status=REPORTED)
        assert not world.causes.delays_status(KEY)

    scenario(body)


def test_other_statuses_are_not_held() -> None:
    async def body(world: Creating) -> None:
        world.see()
        assert not world.causes.delays_status(KEY)
        world.see(pod("cache-0"), status=REPORTED)
        assert not world.causes.delays_status(KEY)

    scenario(body)
