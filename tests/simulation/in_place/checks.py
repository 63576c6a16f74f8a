"""What holds at each step of an update, and at its end. Written from the documentation, not from the decision."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from memcached_api.annotations import ARGS_ANNOTATION, MEMORY_ANNOTATION, ORIGIN_ANNOTATION, RECORD_ANNOTATION
from memcached_api.memcached.changes.resizing import Amounts
from memcached_operator.kube.resource import PODS, STATEFULSETS, Key, Object, controller_of, nested_list, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcached.updates.amounts import has_amounts, lowers_memory_limit, names_of
from simulation.clock import now
from simulation.cluster.access import is_deleted, is_ready
from simulation.cluster.kubelets import Kubelets
from simulation.cluster.statefulsets import REVISION
from simulation.plane import SimulatedPlane
from support.kubelet import AGENT, MEMCACHED, specs
from support.nodes import Kubelet

LATE: Final = timedelta(minutes=9)
"""10 minutes, less what a message can be late."""
SEEN: Final = timedelta(seconds=1)
"""Until the operator knows what others have changed."""
PENDING: Final = timedelta(seconds=110)
"""For which the next step waits for a restart that does not begin: documented as 2 minutes."""


class Checks:
    """Checks each write of the operator (`user`) to a pod of a StatefulSet.

    `kept`: the writes that changed a pod in place. `problems`: what did not hold. `tampered`: the uids of pods that
    another client has changed, of which nothing is promised.
    """

    def __init__(self, plane: SimulatedPlane, kubelets: Kubelets, user: str) -> None:
        self.kept, self.problems, self.tampered = 0, list[str](), set[str]()
        self._plane, self._kubelets, self._user = plane, kubelets, user
        self._pods: dict[str, Object] = {}
        self._unready: dict[str, datetime] = {}
        self._changed: dict[str, datetime] = {}
        plane.server.subscribe(self._record)

    def _record(self, change: str, pod: Object) -> None:
        owner = controller_of(pod)
        if pod["kind"] != PODS.kind or owner is None or owner["kind"] != STATEFULSETS.kind:
            return
        name, old = pod["metadata"]["name"], self._pods.get(pod["metadata"]["name"])
        workload = self._plane.server.objects.get(Key(STATEFULSETS, pod["metadata"]["namespace"], owner["name"]))
        own = self._plane.server.user == self._user and old is not None and workload is not None
        if own and change == "MODIFIED" and pod["metadata"]["uid"] not in self.tampered:
            self.problems += (f"{now()}: {name} {problem}" for problem in self._step(old or {}, pod, workload or {}))
        self._pods[name] = pod
        if is_ready(pod) and change != "DELETED":
            self._unready.pop(name, None)
        else:
            self._unready.setdefault(name, now())

    def _step(self, old: Object, new: Object, workload: Object) -> Iterator[str]:
        """What is wrong with a step."""
        kubelet = self._kubelets.pods.get(old["metadata"]["uid"])
        if kubelet is None or not nested_list(old, "status", "containerStatuses"):
            return  # its containers do not exist yet
        model, deletes = kubelet.kubelet.model, is_deleted(new)
        before = model.wanted(MEMCACHED)
        model.pod = new
        restarts = not deletes and MEMCACHED in model.running and model.wanted(MEMCACHED) != before
        self.kept += not deletes
        if deletes and not _may_replace(old, workload["spec"]["template"]):
            yield "is deleted although it could be updated in place"
        target = nested_map(workload, "status").get("updateRevision")
        restored = _restored_from(old, new, target)
        if restored:
            for name, container in specs(new).items():
                if container["image"] not in kubelet.kubelet.images[name]:
                    yield f"gets back an image that never ran: {container['image']}"
        elif deletes or restarts:
            yield from self._at_once(old, workload)
        if not deletes and target == _revision(new) != _revision(old) and not restored:
            yield from _lacking(kubelet.kubelet, specs(workload["spec"]["template"]))
        if restarts:
            self._changed[new["metadata"]["uid"]] = now()

    def _at_once(self, pod: Object, workload: Object) -> Iterator[str]:
        """No more slots are disturbed than the limit, unless the pod has nothing to lose."""
        meta, pdb = workload["metadata"], "podDisruptionBudget"
        spec = self._plane.server.objects[Key(MEMCACHEDS, meta["namespace"], meta["name"])]["spec"]
        limits = [nested_map(spec, each).get("maxUnavailable", 1) for each in ("rollout", pdb)]
        own = pod["metadata"]["name"]
        others = [name for slot in range(workload["spec"]["replicas"]) if (name := f"{meta['name']}-{slot}") != own]
        moving = {name for name in others if self._is_moving(name)}
        disturbed = moving | {name for name in others if self._unready_for(name) > SEEN}
        lost = not _runs(pod) or self._unready_for(own) >= LATE
        if len(moving if lost else disturbed) >= min(limits):
            yield f"is disturbed beside {sorted(moving if lost else disturbed)}, limit {min(limits)}"

    def _unready_for(self, name: str) -> timedelta:
        return now() - self._unready[name] if name in self._unready else timedelta()

    def _is_moving(self, name: str) -> bool:
        """Whether a slot has no pod, or one whose memcached may restart because of a write of the operator."""
        pod = self._pods.get(name)
        if pod is None or is_deleted(pod) or nested_map(pod, "status").get("phase") == "Failed":
            return pod is None or self._unready_for(name) > SEEN
        uid = pod["metadata"]["uid"]
        if uid in self.tampered or uid not in self._kubelets.pods:
            return False
        kubelet = self._kubelets.of(pod)
        ran, wanted = kubelet.model.running.get(MEMCACHED), kubelet.model.wanted(MEMCACHED)
        if ran is None or uid not in self._changed or now() - self._changed[uid] > PENDING:
            return False
        by_image = wanted.image != ran.image and not kubelet.nodes.lacks(wanted.image)
        return by_image or (wanted.args != ran.args and AGENT in kubelet.model.running)

    def stopped(self) -> Iterator[str]:
        """The pods without memcached whose previous image exists."""
        for pod in self._pods.values():
            before: Any = _record(pod).get("before") or {"images": {}}
            image, uid = before["images"].get(MEMCACHED), pod["metadata"]["uid"]
            exists = image and not is_deleted(pod) and not self._kubelets.nodes.lacks(image)
            if exists and uid not in self.tampered and not _runs(pod):
                yield f"{pod['metadata']['name']} is not restored to its image {image}"

    def incomplete(self, workload: Object) -> Iterator[str]:
        """How the pods of a StatefulSet differ from its template."""
        template, meta = workload["spec"]["template"], workload["metadata"]
        wanted, target = template["metadata"]["annotations"], specs(template)
        for slot in range(workload["spec"]["replicas"]):
            name = f"{meta['name']}-{slot}"
            pod = self._plane.server.objects[Key(PODS, meta["namespace"], name)]
            found, model = nested_map(pod, "metadata", "annotations"), self._kubelets.of(pod).model
            if {each: found.get(each) for each in wanted} != wanted or RECORD_ANNOTATION in found:
                yield f"{name} has the annotations {found}"
            for each, asked in target.items():
                own = specs(pod)[each]
                if own["image"].removeprefix(MIRROR) != asked["image"]:
                    yield f"{name} has the image {own['image']}"
                if model.running.get(each) != model.wanted(each):
                    yield f"{name} runs something else: {model.running}"
                yield from () if pod["metadata"]["uid"] in self.tampered else _amounts(name, own, asked)
                if lowers_memory_limit(model.allocated[each], asked.get("resources", {})):
                    yield f"{name} has a lower limit"


MIRROR: Final = "mirror/"
"""The prefix that admission gives images."""


def _amounts(name: str, own: Object, target: Object) -> Iterator[str]:
    found, wanted = own.get("resources", {}), target.get("resources", {})
    if not has_amounts(found, wanted) or _extra(found, wanted):
        yield f"{name} has the amounts {found}, want {wanted}"


def _may_replace(pod: Object, template: Object) -> bool:
    """Whether only a new pod has what the template asks for, or a new pod costs nothing."""
    old, new = (each["metadata"]["annotations"] for each in (pod, template))
    created, target = (json.loads(each[ORIGIN_ANNOTATION]) for each in (old, new))
    first = [each for each in nested_list(pod, "status", "containerStatuses") if each["name"] == MEMCACHED]
    if created["fixed"] != target["fixed"] or not first or not first[0].get("containerID"):
        return True
    own = {name: each.get("resources", {}) for name, each in specs(pod).items()}
    if any(_extra(each, target["resources"].get(name, {})) for name, each in own.items()):
        return True
    return int(new.get(MEMORY_ANNOTATION, 0)) < int(old.get(MEMORY_ANNOTATION, 0))


def _extra(amounts: Amounts, desired: Amounts) -> set[str]:
    """The amounts that are not desired. Only a new pod is without one."""
    return names_of(amounts) - names_of(desired)


def _record(pod: Object) -> Any:
    """What the record of an update says; nothing without one."""
    return json.loads(pod["metadata"]["annotations"].get(RECORD_ANNOTATION) or "{}")


def _restored_from(old: Object, new: Object, revision: str | None) -> bool:
    """Whether a step restores a pod to what its record says, and that is not wanted again."""
    before: str | None = (_record(old).get("before") or {"revision": None})["revision"]
    return bool(before) and _revision(new) == before != revision and not is_deleted(new)


def _revision(pod: Object) -> str | None:
    return nested_map(pod, "metadata", "labels").get(REVISION)


def _lacking(kubelet: Kubelet, target: dict[str, Object]) -> Iterator[str]:
    """The containers whose images and arguments are changed before their node has raised their memory limits."""
    for name, container in target.items():
        found = kubelet.model.containers[name]
        if found.starts and lowers_memory_limit(found.resources, container.get("resources", {})):
            yield f"is changed before the limits of container {name} are raised: {found.resources}"


def _runs(pod: Object) -> bool:
    statuses = nested_list(pod, "status", "containerStatuses")
    return any(each["name"] == MEMCACHED and "running" in each["state"] for each in statuses)


FORGED_NAMES: Final = (RECORD_ANNOTATION, ORIGIN_ANNOTATION, ARGS_ANNOTATION, MEMORY_ANNOTATION)
"""The annotations that another client changes."""
