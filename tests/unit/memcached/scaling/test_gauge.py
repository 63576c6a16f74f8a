"""The metric about a change of size that waits for slots or proxies."""

from datetime import UTC, datetime

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from memcached_operator import metrics
from memcached_operator.app import change_gauges
from memcached_operator.kube.resource import Key, Object
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcached.scaling.latch import Latch, stable
from memcached_operator.memcached.scaling.report import waiting_since
from memcached_operator.parts.ring import Phase
from unit.builders import slots

CR = slots(3, spec={"scaling": {"warm": {"duration": "30m"}}})
SINCE = datetime(2026, 12, 1, 10, tzinfo=UTC)


def statefulset(latch: Latch) -> Object:
    """A StatefulSet with this record."""
    return {"metadata": {"annotations": latch.annotations()}}


def at(phase: Phase, moving: datetime | None = None) -> Object:
    """A StatefulSet in a phase since SINCE."""
    return statefulset(Latch(3, 4, phase, 7, SINCE, moving))


@pytest.mark.parametrize(
    ("live", "waits"),
    [
        (None, False),
        ({"metadata": {}}, False),
        (statefulset(stable(3)), False),
        (at(Phase.WAIT), True),
        (at(Phase.PREPARE), True),
        (at(Phase.MOVE), True),
        (at(Phase.FINISH), True),
        (at(Phase.PLAIN), True),
        (statefulset(Latch(3, 4, Phase.FINISH, 7)), False),
    ],
)
def test_only_phases_that_wait_have_a_time(live: Object | None, waits: bool) -> None:
    assert waiting_since(CR, live) == (int(SINCE.timestamp()) if waits else None)


def test_move_waits_from_its_end_on() -> None:
    assert waiting_since(CR, at(Phase.MOVE, SINCE)) == int(SINCE.timestamp()) + 1800


def test_gauge_has_a_sample_for_each_change_that_waits() -> None:
    gauges, registry = (
        metrics.ObjectGauges(("memcached_namespace", "memcached"), {metrics.SCALING_WAITS: "Text."}),
        (CollectorRegistry()),
    )
    registry.register(gauges)
    assert b"{" not in generate_latest(registry)
    gauges.read = lambda: map(change_gauges, {Key(MEMCACHEDS, "test", "cache"): 7}.items())
    labels = {"memcached_namespace": "test", "memcached": "cache"}
    assert registry.get_sample_value(metrics.SCALING_WAITS, labels) == 7
