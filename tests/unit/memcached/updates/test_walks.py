"""From every state, also a forged one, an update of a pod is completed, or ends with a problem that has a remedy."""

import random
from datetime import datetime
from typing import Any, Final

import pytest

from memcached_operator.kube.resource import Object
from unit.memcached.updates.world import World

WALKS: Final = 500
MAX_DECISIONS: Final = 120


def _ready_since(pod: Object) -> datetime | None:
    (ready,) = (each for each in pod["status"]["conditions"] if each["type"] == "Ready")
    return datetime.fromisoformat(ready["lastTransitionTime"]) if ready["status"] == "True" else None


@pytest.mark.parametrize("seed", range(12))
def test_walks_end(seed: int) -> None:
    """In no state, a pod that is ready waits for nothing: what is not ready has the deadline of the rollout."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    for _ in range(WALKS):
        world = World(chance)
        trail: list[Any] = []
        found = world.decide()
        for _ in range(MAX_DECISIONS):
            trail.append((found.step and found.step.verb, found.doing, found.problems))
            assert found.complete or found.step or found.problems or found.requeue_after or not _ready_since(world.pod)
            if found.step is not None:
                world.write(found.step)
            elif found.complete and not found.requeue_after:
                break
            else:
                world.pass_time()
            found = world.decide()
        else:
            assert found.problems or world.asleep or not _ready_since(world.pod), trail[-5:]
            remedies = ("delete it", "set it", "previous image", "kubectl logs")
            assert all(any(each in problem.message for each in remedies) for problem in found.problems)
