"""What admission says that a change does to the pods is what the controller does to them, if the cluster can do it."""

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import assume, given

from memcached_api.annotations import MEMORY_ANNOTATION
from memcached_api.effects import Effect
from memcached_api.images import Images
from memcached_api.memcached.changes.effect import effect_of
from memcached_api.memcached.types import MEMCACHED, decode_spec
from memcached_operator.engine.kind import PodStep
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.desired.statefulset import statefulset
from memcached_operator.memcached.slots.changeable import updatable, with_digest
from memcached_operator.memcached.updates import decision
from memcached_operator.world.snapshot import Resize
from unit.builders import NOW, memcached, typed
from unit.memcached.test_changes import SPECS, agent_of, changes, decoded
from unit.memcached.test_effects import CHANGES, SLOTS
from unit.memcached.updates.updating import LATER, NEW, created, ended
from unit.memcached.updates.updating import statefulset as live

Spec = dict[str, Any]
MINUTE = timedelta(minutes=1)
MAX_STEPS = 6
"""Writes per pod: record, resize, change, resize, record, and one to see that nothing follows."""


def built(spec: Spec) -> Object:
    """The StatefulSet, without what updates in place need."""
    cr = memcached(**spec)
    return statefulset(cr, decode_spec(cr), Images(spec["image"], agent_of(spec)))


def template(spec: Spec) -> Object:
    """The pod template of the StatefulSet."""
    return updatable(built(spec), decode_spec(memcached(**spec)))["spec"]["template"]


class Pod:
    """A simulated pod, to which the steps of an update are made. `effect`: the strongest one so far."""

    def __init__(self, origin: Object) -> None:
        self.found = created(0, origin)
        self.effect = Effect.NOTHING
        self.steps = 0

    def make(self, step: PodStep) -> None:
        """Make a step, and what the kubelet does upon it."""
        self.steps += 1
        if step.patch is None:
            self._reaches(Effect.REPLACE)
            return
        meta, containers = step.patch.get("metadata", {}), step.patch.get("spec", {}).get("containers", [])
        self._change(meta)
        for each in containers:
            self._container(each["name"]).update({name: value for name, value in each.items() if name != "name"})
        if step.subresource:
            self._reaches(Effect.RESIZE)
            for status in self.found["status"]["containerStatuses"]:
                status["resources"] = self._container(status["name"])["resources"]
        if "labels" in meta:
            self._reaches(Effect.IN_PLACE)
            self._restart({each["name"] for each in containers})
            if MEMORY_ANNOTATION in meta["annotations"]:
                self._reaches(Effect.RESIZE)

    def _reaches(self, effect: Effect) -> None:
        self.effect = max(self.effect, effect)

    def _change(self, meta: Object) -> None:
        own = self.found["metadata"]
        own["labels"] = {**own["labels"], **meta.get("labels", {})}
        annotations = {**own["annotations"], **meta.get("annotations", {})}
        self.arguments_changed = any("/args" in name for name in meta.get("annotations", {}))
        own["annotations"] = {name: text for name, text in annotations.items() if text is not None}

    def _restart(self, images: set[str]) -> None:
        for status in self.found["status"]["containerStatuses"]:
            is_memcached = status["name"] == "memcached"
            if status["name"] in images or (is_memcached and self.arguments_changed):
                number = int(status["containerID"].removeprefix("id-"))
                status["lastState"] = ended(0, status["containerID"])
                status["containerID"] = f"id-{number + 1}"
                status["imageID"] = f"sha-{self._container(status['name'])['image']}"
                status["state"] = {"running": {"startedAt": LATER}}
                self._reaches(Effect.RESTART if is_memcached else Effect.IN_PLACE)

    def _container(self, name: str) -> Object:
        return next(each for each in self.found["spec"]["containers"] if each["name"] == name)


def done(old: Spec, new: Spec) -> Effect:
    """What the controller does to a pod of the old spec."""
    before, after = template(old), template(new)
    if before == after:
        return Effect.NOTHING
    pod, rules = Pod(before), with_digest(lambda: built(new), decode_spec(memcached(**new)))
    while True:
        found = decision.decide(live(after, 1), typed(pod.found), rules, Resize.ANY, NOW + pod.steps * MINUTE)
        assert found is not None
        if found.step is None:
            assert found.complete, found.doing
            break
        assert pod.steps < MAX_STEPS, "the steps do not end"
        pod.make(found.step)
        if pod.effect is Effect.REPLACE:
            return pod.effect
    assert pod.found["metadata"]["labels"]["controller-revision-hash"] == NEW
    for mine, theirs in zip(pod.found["spec"]["containers"], after["spec"]["containers"], strict=True):
        assert (mine["image"], mine["resources"]) == (theirs["image"], theirs["resources"])
    wanted = after["metadata"]["annotations"]
    assert {name: pod.found["metadata"]["annotations"].get(name) for name in wanted} == wanted
    return pod.effect


STABLE = [(old, new, effect) for old, new, effect, _ in CHANGES if old.get("identity") == "Stable"]


@pytest.mark.parametrize(("old", "new", "effect"), STABLE)
def test_controller_does_what_the_table_says(old: Spec, new: Spec, effect: Effect) -> None:
    assert done(old, new) is effect


@given(SPECS, SPECS)
def test_controller_does_what_admission_says(spec: Spec, other: Spec) -> None:
    old = {**spec, "identity": SLOTS["identity"]}
    assume(not MEMCACHED.validate(memcached(**old)))
    for field, new in changes(old, other):
        assert done(old, new) is effect_of(decoded(new), decoded(old)).effect, field
