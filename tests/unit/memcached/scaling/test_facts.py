"""The seconds for which a slot is known not to be ready: the deadlines of a change of size count them."""

from datetime import timedelta
from typing import Final

import pytest

from memcached_operator.kube.resource import Object
from memcached_operator.memcached.scaling.facts import unready_slots
from memcached_operator.memcached.scaling.latch import Latch
from memcached_operator.parts.ring import Phase
from unit.builders import NOW, ago, pod, slots, snapshot_of


def ready(status: str, seconds: int) -> list[Object]:
    """The conditions of a pod."""
    return [{"type": "Ready", "status": status, "lastTransitionTime": ago(seconds)}]


CASES: Final[dict[str, tuple[list[Object], dict[str, str], int, list[tuple[int, float]]]]] = {
    "ready": (ready("True", 50), {"creationTimestamp": ago(100)}, 200, []),
    "not ready": (ready("False", 50), {"creationTimestamp": ago(100)}, 200, [(0, 50.0)]),
    "since the last arrow": (ready("False", 50), {"creationTimestamp": ago(100)}, 20, [(0, 20.0)]),
    "in the future": (ready("False", -50), {"creationTimestamp": ago(100)}, 200, [(0, 100.0)]),
    "without the condition": ([], {"creationTimestamp": ago(100)}, 200, [(0, 100.0)]),
    "without a time": ([], {}, 200, [(0, 0.0)]),
    "being deleted": (
        *(ready("True", 50), {"creationTimestamp": ago(100), "deletionTimestamp": ago(30)}, 200, [(0, 30.0)]),
    ),
}
"""The conditions and the metadata of the pod, the seconds since the last arrow, and what is found."""


@pytest.mark.parametrize(("conditions", "meta", "arrow", "found"), CASES.values(), ids=CASES)
def test_time_for_which_a_slot_is_not_ready(
    conditions: list[Object], meta: dict[str, str], arrow: int, found: list[tuple[int, float]]
) -> None:
    latch = Latch(1, 2, Phase.PREPARE, 7, NOW - timedelta(seconds=arrow))
    slot = pod("cache-0", conditions=conditions)
    slot["metadata"] = {**slot["metadata"], "creationTimestamp": None, **meta}
    snapshot = snapshot_of(slots(1), pods=(slot,))
    assert [each for each in unready_slots(snapshot, latch, NOW) if each[0] == 0] == found
