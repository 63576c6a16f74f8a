"""What holds at each step of an update, and at its end. Written from the documentation, not from the decision."""

import json
from datetime import datetime, timedelta
from typing import Any, Final

from memcached_api.annotations import ARGS_ANNOTATION, MEMORY_ANNOTATION, ORIGIN_ANNOTATION, RECORD_ANNOTATION
from memcached_api.memcached.changes.resizing import Amounts
from memcached_operator.engine.kind import PodStep
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.amounts import has_amounts, lowers_memory_limit, names_of, spec_amounts
from memcached_operator.world.snapshot import Resize
from support.kubelet import MEMCACHED
from unit.builders import pod_of
from unit.memcached.walks.cluster import CR, SET, Cluster

LATE: Final = timedelta(minutes=9)
"""10 minutes, by the clock of a leader that is 50 s fast."""
MAX_WRITES: Final = 60
"""Writes to one pod in a fair world for one revision, with the 4 of each resize that is tried again."""
REMEDIES: Final = ("To replace the pod", "restartedAt", "Correct", "correct", "Request less", "Set the previous values")


class Checks:
    """The checks of one walk. `cluster`: set after its creation."""

    cluster: Cluster

    def __init__(self) -> None:
        self.writes: dict[tuple[str, str], int] = {}

    def step(self, step: PodStep) -> None:
        """Check a step, before it is made, with what the operator has seen."""
        pod, patch = self.cluster.seen[step.pod.name], step.patch
        kubelet = self.cluster.kubelets.get(step.pod.name)
        if kubelet is None or kubelet.pod["metadata"]["uid"] != pod["metadata"]["uid"]:
            return  # it does not exist any more
        key = (pod["metadata"]["uid"], self.cluster.seen[SET]["status"]["updateRevision"])
        self.writes[key] = self.writes.get(key, 0) + 1
        assert self.cluster.faulty or self.writes[key] <= MAX_WRITES, "the writes do not end"
        assert self.cluster.resize or step.subresource != "resize", "the cluster cannot resize"
        listed = [each["name"] for each in (patch or {}).get("spec", {}).get("containers", ())]
        names = [each["name"] for each in pod["spec"]["containers"]]
        assert listed == [name for name in names if name in listed], "the API server rejects a new order"
        if kubelet.tampered:
            return
        if patch is None:
            assert not self.cluster.lacks_pods(), "a pod is deleted although none can be created"
            assert self._may_replace(pod), "a pod is deleted although it could be updated in place"
        record: Any = json.loads(pod["metadata"]["annotations"].get(RECORD_ANNOTATION) or "{}")
        before: Any = record.get("before")
        is_newest = before and before.get("revision") == key[1]  # the user wants it again
        if patch is not None and before and not is_newest and _is_restored(patch, before):
            for container in patch.get("spec", {}).get("containers", ()):
                assert container["image"] in kubelet.images[container["name"]], "restored to an image that never ran"
        elif patch is None or _restarts(pod, patch):
            self._check_limit(step.pod.name)

    def end(self, *, complete: bool) -> None:
        """Check the last state: the update is complete, or the status has a remedy."""
        degraded, plan = self.cluster.status()["Degraded"], self.cluster.plan
        assert plan is not None
        paused = self.cluster.objects[CR]["spec"]["rollout"].get("paused")
        if plan.update is not None and plan.update.complete and not paused:
            self._check_complete()
            return
        assert not complete, f"not complete in a fair world: {degraded['message']}"
        has_remedy = any(remedy in degraded["message"] for remedy in REMEDIES)
        assert paused or (degraded["status"] == "True" and has_remedy), f"no remedy: {degraded['message']}"

    def _check_limit(self, name: str) -> None:
        """No more slots are disturbed than the limit, unless the pod has nothing to lose."""
        cluster, spec = self.cluster, self.cluster.seen[CR]["spec"]
        limit = min(spec["rollout"]["maxUnavailable"], spec["podDisruptionBudget"]["maxUnavailable"])
        size = cluster.seen[SET]["spec"]["replicas"]
        others = {f"cache-{slot}" for slot in range(size)} - {name}
        moving = {other for other in others if self._is_moving(other)}
        disturbed = moving | {
            other for other in others - moving if _unready_for(cluster.seen[other], cluster.now) is not None
        }
        lost = not _runs(cluster.seen[name]) or (_unready_for(cluster.seen[name], cluster.now) or timedelta()) >= LATE
        assert len(moving if lost else disturbed) < limit, f"{name} beside {sorted(disturbed)}, limit {limit}"

    def _is_moving(self, name: str) -> bool:
        pod = self.cluster.seen.get(name)
        if pod is None or pod["metadata"].get("deletionTimestamp") or pod.get("status", {}).get("phase") == "Failed":
            return True
        kubelet = self.cluster.kubelets.get(name)
        same = kubelet is not None and kubelet.pod["metadata"]["uid"] == pod["metadata"]["uid"]
        return kubelet is not None and same and not kubelet.tampered and kubelet.is_pending(self.cluster.now)

    def _may_replace(self, pod: Object) -> bool:
        """Whether only a new pod has what the template asks for, or a new pod costs nothing."""
        template = self.cluster.seen[SET]["spec"]["template"]
        old, new = (each["metadata"]["annotations"] for each in (pod, template))
        created, target = (json.loads(each[ORIGIN_ANNOTATION]) for each in (old, new))
        first = [each for each in pod.get("status", {}).get("containerStatuses", ()) if each["name"] == MEMCACHED]
        if created["fixed"] != target["fixed"] or not first or not first[0].get("containerID"):
            return True
        if any(_extra(own, target["resources"].get(name, {})) for name, own in spec_amounts(pod_of(pod)).items()):
            return True
        if int(new.get(MEMORY_ANNOTATION, 0)) < int(old.get(MEMORY_ANNOTATION, 0)):
            return True
        amounts = spec_amounts(pod_of(pod))
        other = [name for name, each in target["resources"].items() if not has_amounts(amounts[name], each)]
        lower = any(lowers_memory_limit(target["resources"][name], amounts[name]) for name in other)
        resize = self.cluster.resize
        return bool(other) and (resize is Resize.NONE or (resize is Resize.RAISE and lower))

    def _check_complete(self) -> None:
        live = self.cluster.objects[SET]
        template = live["spec"]["template"]
        for name, kubelet in self.cluster.kubelets.items():
            pod, wanted = kubelet.pod, template["metadata"]["annotations"]
            found = pod["metadata"]["annotations"]
            assert {each: found.get(each) for each in wanted} == wanted, f"{name} has other annotations"
            assert RECORD_ANNOTATION not in found, f"{name} has a record"
            containers = {each["name"]: each for each in pod["spec"]["containers"]}
            for spec in template["spec"]["containers"]:
                own = containers[spec["name"]]
                image = own["image"].removeprefix("mirror/")
                assert kubelet.tampered or image == spec["image"], f"{name} has the image {image}"
                assert kubelet.ran[own["name"]] == kubelet.wanted(own["name"]), f"{name} runs something else"
                if self.cluster.resize is Resize.ANY and not kubelet.tampered:
                    assert has_amounts(own["resources"], spec["resources"]), f"{name} has other amounts"
                    assert not _extra(own["resources"], spec["resources"]), f"{name} keeps an added amount"
                    allocated = kubelet.allocated[own["name"]]
                    assert not lowers_memory_limit(allocated, spec["resources"]), f"{name} has a lower limit"


def _extra(amounts: Amounts, desired: Amounts) -> set[str]:
    """The amounts that are not desired. Only a new pod is without one."""
    return names_of(amounts) - names_of(desired)


def _restarts(pod: Object, patch: Object) -> bool:
    """Whether a step restarts memcached that runs."""
    images = {each["name"]: each.get("image") for each in patch.get("spec", {}).get("containers", ())}
    present = next(each["image"] for each in pod["spec"]["containers"] if each["name"] == MEMCACHED)
    annotations = patch.get("metadata", {}).get("annotations", {})
    args = pod["metadata"]["annotations"].get(ARGS_ANNOTATION)
    return _runs(pod) and (
        images.get(MEMCACHED) not in (None, present) or annotations.get(ARGS_ANNOTATION, args) not in (None, args)
    )


def _is_restored(patch: Object, before: Any) -> bool:
    return patch.get("metadata", {}).get("labels", {}).get("controller-revision-hash") == before["revision"]


def _runs(pod: Object) -> bool:
    statuses = pod.get("status", {}).get("containerStatuses", ())
    return any(each["name"] == MEMCACHED and "running" in each["state"] for each in statuses)


def _unready_for(pod: Object, now: datetime) -> timedelta | None:
    """The time for which a pod has not been ready; None if it is."""
    for each in pod.get("status", {}).get("conditions", ()):
        if each["type"] == "Ready":
            return None if each["status"] == "True" else now - datetime.fromisoformat(each["lastTransitionTime"])
    return timedelta()
