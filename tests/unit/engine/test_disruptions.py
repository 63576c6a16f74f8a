"""When a pod that Kubernetes has stopped is reported: once, by an Event with a name of its own, and in the counter."""

from datetime import timedelta
from typing import Any, cast

import pytest

from memcached_operator.engine.events.disruptions import EVENT_BURST, Disruptions
from memcached_operator.engine.reporting.posted_events import Recorder, event_of
from memcached_operator.engine.reporting.reports import Report
from memcached_operator.findings.disruptions import RECENT, WINDOW
from memcached_operator.kube.resource import Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.metrics import REGISTRY
from unit.builders import NOW, memcached, typed
from unit.findings.test_disruptions import failed

KEY = Key(MEMCACHEDS, "test", "cache")
LOSS = "its items are lost"


class Clock:
    """A clock that a test sets."""

    time = NOW

    @classmethod
    def now(cls, _: Any) -> Any:
        """The time."""
        return cls.time


@pytest.fixture(autouse=True)
def _now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clock, "time", NOW)
    monkeypatch.setattr("memcached_operator.engine.events.disruptions.datetime", Clock)


class World:
    """A process with its Events."""

    def __init__(self, started: timedelta = -timedelta(hours=1)) -> None:
        self.events: list[Object] = []
        self.disruptions = Disruptions(cast("Recorder", self), NOW + started)
        self.cr: Object = memcached()

    def record(self, cr: Object, reports: list[Report]) -> None:
        """Keep the Events."""
        self.events += [event_of(cr, report, Clock.time) for report in reports]

    def see(self, *uids: str, after: timedelta = timedelta()) -> None:
        """Observe failed pods. `after`: since the start of the test."""
        Clock.time = NOW + after
        self.disruptions.observe(KEY, self.cr, typed(*map(stopped, uids)), LOSS)

    @property
    def kept(self) -> int:
        """The number of disruptions for the status."""
        return len(self.disruptions.of(KEY, self.cr["metadata"]["uid"]))


def stopped(uid: str) -> Object:
    """A pod that was evicted 20 s before NOW."""
    obj = failed()
    return {**obj, "metadata": {**obj["metadata"], "uid": uid}}


def counted() -> float:
    """The value of the counter."""
    labels = {"controller": "memcached", "reason": "Evicted"}
    return REGISTRY.get_sample_value("memcached_operator_pod_disruptions_total", labels) or 0


def test_pod_is_reported_once_however_often_it_is_seen() -> None:
    world, before = World(), counted()
    for _ in range(3):
        world.see("a")
    (event,) = world.events
    assert (event["metadata"]["name"], event["type"], event["reason"]) == ("cache.a", "Warning", "PodDisrupted")
    assert event["message"].startswith("Kubernetes stopped pod cache-0")
    assert event["message"].endswith(LOSS)
    assert (world.kept, counted() - before) == (1, 1)


def test_later_process_gives_the_event_the_same_name_and_does_not_count_again() -> None:
    """The API server rejects it."""
    first, later, before = World(), World(started=timedelta(seconds=5)), counted()
    for world in (first, later):
        world.see("a", after=timedelta(seconds=9))
    assert first.events[0]["metadata"]["name"] == later.events[0]["metadata"]["name"]
    assert counted() - before == 1
    assert later.kept == 1


def test_old_pod_is_not_reported_by_a_later_process() -> None:
    """Its Event can have expired. The status considers it a little longer."""
    world = World()
    world.see("a", after=RECENT)
    assert (world.events, world.kept) == ([], 1)
    world.see("b", after=WINDOW)
    assert (world.events, world.kept) == ([], 0)


def test_many_disruptions_have_few_events_and_the_next_one_counts_the_others() -> None:
    world, before = World(), counted()
    world.see(*map(str, range(20)))
    assert (len(world.events), counted() - before, world.kept) == (EVENT_BURST, 20, 20)
    world.see("later", after=timedelta(minutes=2))
    assert world.events[-1]["message"].endswith(". Before, it stopped 15 more")


def test_later_object_of_the_same_name_has_no_disruptions() -> None:
    world = World()
    world.see("a")
    world.cr = {**world.cr, "metadata": {**world.cr["metadata"], "uid": "other"}}
    assert world.kept == 0
    world.see("b")
    assert world.kept == 1
    world.disruptions.forget(KEY)
    assert world.kept == 0
