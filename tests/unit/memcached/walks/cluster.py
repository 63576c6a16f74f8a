"""A cluster with one Memcached: the API server, the StatefulSet controller, kubelets, and the operator's own loop.

Each actor acts a while after what concerns it has changed. The operator sees objects late, decides with its own clock,
and acts only upon an event or its own timer.
"""

import random
from collections.abc import Callable
from copy import deepcopy
from datetime import datetime, timedelta
from typing import Any, Final, cast

from memcached_api.annotations import OWN_PREFIX
from memcached_api.images import Images
from memcached_operator.engine.kind import Outcome, Plan, PodStep
from memcached_operator.engine.reporting.conditions import with_transition_times
from memcached_operator.engine.writes.apply import build_intent
from memcached_operator.engine.writes.ownership import Action, decide
from memcached_operator.kube.compare import fingerprint
from memcached_operator.kube.resource import STATEFULSETS, Object, key_of
from memcached_operator.memcached.plan import plan_with
from memcached_operator.memcached.status import status_with
from memcached_operator.world.snapshot import Message, Resize, Snapshot
from support.kubelet import MEMCACHED
from unit.builders import NOW, memcached, owned, pod_of, snapshot_of
from unit.memcached.walks.kubelet import Kubelet, Nodes

PLAN: Final = plan_with(Images("memcached:1", "agent:1"))
STATUS: Final = status_with("cluster.local")
CR, SET, OPERATOR, DISCOVERY = "cr", "set", "operator", "discovery"
"""The names of the Memcached, of its StatefulSet, and of actors; pods and kubelets have the names of pods."""


class Cluster:
    """`objects`: as stored. `seen`: as the operator sees them. `due`: when each actor acts next.

    `check`: called with each step before it is made. `faulty`: replies are lost, and writes fail. `quota`: pods cannot
    be created. `rejections`: when the pods of slots were rejected last, of which there are Events. `unclear`: the pod
    of the last step, if its reply was lost. `skew`: how fast the leader's clock is.
    """

    def __init__(self, chance: random.Random, spec: Object, resize: Resize, check: Callable[[PodStep], None]) -> None:
        self.chance, self.resize, self.check = chance, resize, check
        self.now: datetime = NOW
        self.nodes = Nodes()
        self.kubelets: dict[str, Kubelet] = {}
        self.objects: dict[str, Object] = {}
        self.seen: dict[str, Object] = {}
        self.due: dict[str, datetime] = {}
        self.rejections: dict[str, datetime] = {}
        self.faulty, self.quota, self.skew = False, False, timedelta()
        self.plan: Plan | None = None
        self.unclear = ""
        self.known: Resize | None = None
        self.writes = 0
        self._version = 100
        self.change_spec(spec)
        self.elect()

    def change_spec(self, spec: Object) -> None:
        """The user writes another spec."""
        cr = self.objects.get(CR) or memcached()
        generation = cr["metadata"]["generation"] + 1
        self.put(CR, {**cr, "metadata": {**cr["metadata"], "generation": generation}, "spec": spec})

    def put(self, name: str, obj: Object) -> Object:
        """Store an object; the actors that depend on it act later."""
        if obj == self.objects.get(name):
            return obj
        self._version += 1
        meta, stored = obj["metadata"] | {"resourceVersion": str(self._version)}, self.objects.get(name)
        if name in self.kubelets:  # the other actors count their generations
            meta["generation"] = obj["metadata"].get("generation", 0) + (not stored or obj["spec"] != stored["spec"])
        obj = {**obj, "metadata": meta}
        self.objects[name] = obj
        if name in self.kubelets:
            self.kubelets[name].pod = obj
            self.wake(name)
        self._concerned(name)
        return obj

    def wake(self, actor: str, delay: float | None = None) -> None:
        """The actor acts in `delay` seconds at the latest; by default soon, as on a cluster that is sometimes busy."""
        soon = self.chance.choice((0.05, 0.3, 1.0, 3.0)) if not self.faulty or self.chance.random() < 0.97 else 30.0
        at = self.now + timedelta(seconds=soon if delay is None else delay)
        self.due[actor] = min(self.due.get(actor, at), at)

    def run(self, seconds: float) -> bool:
        """Let time pass; False if nothing would ever happen any more."""
        end = self.now + timedelta(seconds=seconds)
        while self.due:
            actor = min(self.due, key=lambda name: self.due[name])
            if self.due[actor] > end:
                break
            self.now = max(self.now, self.due.pop(actor))
            self._act(actor)
        self.now = end
        return bool(self.due)

    def elect(self) -> None:
        """Another leader lists all objects, and has another clock. It does not know yet what the cluster can."""
        self.seen = dict(self.objects)
        self.skew = timedelta(seconds=self.chance.choice((0, 0, -5, 5, 50)))
        self.known = None
        self.wake(DISCOVERY)

    def delete(self, name: str) -> None:
        """The pod is being deleted: its kubelet stops it."""
        pod = self.objects[name]
        self.put(name, {**pod, "metadata": {**pod["metadata"], "deletionTimestamp": "2030-01-01T00:00:00Z"}})

    def status(self) -> dict[str, Object]:
        """The conditions in the status, by type."""
        return {each["type"]: each for each in self.objects[CR].get("status", {}).get("conditions", ())}

    def lacks_pods(self) -> bool:
        """Whether the operator can know that pods cannot be created."""
        slots = (f"cache-{slot}" for slot in range(self.seen[SET]["spec"]["replicas"]))
        return any(name in self.rejections and name not in self.seen for name in slots)

    def _concerned(self, name: str) -> None:
        self.wake(f"see {name}")
        self.wake(SET)

    def _act(self, actor: str) -> None:
        if actor == OPERATOR:
            self._reconcile()
        elif actor == SET:
            self._create_and_count()
        elif actor == DISCOVERY:
            self.known = self.resize
            self.wake(OPERATOR, 0)
        elif actor in self.kubelets:
            self._sync(actor)
        elif actor.startswith("see "):
            name = actor.removeprefix("see ")
            self.seen.pop(name, None)
            self.seen |= {name: self.objects[name]} if name in self.objects else {}
            self.wake(OPERATOR, 0)

    def _sync(self, name: str) -> None:
        kubelet = self.kubelets[name]
        if kubelet.down is not None and self.now < kubelet.down:
            self.wake(name, (kubelet.down - self.now).total_seconds())
            return
        if kubelet.pod["metadata"].get("deletionTimestamp"):
            del self.kubelets[name], self.objects[name]
            self._concerned(name)
            return
        if kubelet.pod.get("status", {}).get("phase") == "Failed":
            return
        status, again = kubelet.sync(self.now)
        if status != kubelet.pod.get("status"):
            self.put(name, {**kubelet.pod, "status": status})
        self.due.pop(name, None)
        if again is not None:
            self.wake(name, again)

    def _create_and_count(self) -> None:
        """The StatefulSet controller: create and delete pods, and write the counts."""
        live = self.objects.get(SET)
        if live is None:
            return
        revision = f"cache-{fingerprint(live['spec']['template'])[:8]}"
        names = [f"cache-{slot}" for slot in range(live["spec"]["replicas"])]
        for name in [name for name in names if name not in self.objects]:
            if self.quota:
                self.rejections[name] = self.now
                self.wake(OPERATOR)
            else:
                self._create(name, live["spec"]["template"], revision)
        for name in list(self.kubelets):
            meta, phase = self.objects[name]["metadata"], self.objects[name].get("status", {}).get("phase")
            if (name not in names or phase == "Failed") and not meta.get("deletionTimestamp"):
                self.delete(name)
        pods = [self.objects[name] for name in self.kubelets]
        ready = sum(_is_ready(pod) for pod in pods)
        status = {
            "observedGeneration": live["metadata"]["generation"],
            "updateRevision": revision,
            "replicas": len(pods),
            "readyReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": sum(
                pod["metadata"]["labels"].get("controller-revision-hash") == revision for pod in pods
            ),
        }
        if status != live.get("status"):
            self.put(SET, {**live, "status": status})
        if self.quota:
            self.wake(SET, 60)

    def _create(self, name: str, template: Object, revision: str) -> None:
        self._version += 1
        template = deepcopy(template)
        meta = template["metadata"] | {"name": name, "namespace": "test", "uid": f"uid-{self._version}"}
        meta["labels"] = {**meta["labels"], "controller-revision-hash": revision}
        if self.nodes.mirror:
            for container in template["spec"]["containers"]:
                container["image"] = f"mirror/{container['image']}"
        pod = {"kind": "Pod", "metadata": meta, "spec": template["spec"]}
        skew = timedelta(seconds=self.chance.choice((0, 0, 0, -600, 600)) if self.faulty else 0)
        self.kubelets[name] = Kubelet(self.chance, pod, self.nodes, self.now, skew)
        self.put(name, pod)

    def _reconcile(self) -> None:
        """One reconcile of the operator, from what it has seen."""
        if CR not in self.seen:
            return
        now = self.now + self.skew
        snapshot = self._snapshot()
        plan = self.plan = PLAN(snapshot, now)
        (child,) = (each for each in plan.children or () if each["kind"] == "StatefulSet")
        self._apply(child)
        if plan.update is not None and plan.update.step is not None:
            self._make(plan.update.step)
        desired = STATUS(snapshot, Outcome(plan.problems, plan.notices, plan.update), now)
        self._write_status(desired.status, now)
        for seconds in (plan.requeue_after, desired.requeue_after):
            if seconds is not None:
                self.wake(OPERATOR, seconds)

    def _snapshot(self) -> Snapshot:
        live = self.seen.get(SET)
        pods = tuple(obj for name, obj in self.seen.items() if name not in (CR, SET))
        children = {} if live is None else {key_of(STATEFULSETS, live): live}
        denied = tuple(_denied(name, at) for name, at in self.rejections.items())
        said = {} if live is None else {live["metadata"]["uid"]: denied}
        return snapshot_of(self.seen[CR], children, pods, messages=said, resize=self.known)

    def _apply(self, child: Object) -> None:
        """Create or change the StatefulSet."""
        intended, live = build_intent(self.seen[CR], child), self.seen.get(SET)
        action = decide(self.seen[CR], intended, live).action
        if action is Action.SKIP:
            return
        self.wake(OPERATOR, 1.0)
        if self._fails() or (live is None) != (SET not in self.objects):
            return
        stored = self.objects.get(SET) or owned(resource=STATEFULSETS, generation=0)
        kept = stored["metadata"].get("annotations", {}).items()
        others = {name: text for name, text in kept if not name.startswith(OWN_PREFIX)}
        meta = {**stored["metadata"], "labels": intended["metadata"]["labels"]}
        meta["annotations"] = others | intended["metadata"]["annotations"]
        meta["generation"] += intended["spec"] != stored.get("spec")
        self.seen[SET] = self.put(SET, {**stored, "metadata": meta, "spec": intended["spec"]})

    def _make(self, step: PodStep) -> None:
        """Make a step, if the pod has not changed since."""
        name = step.pod.name
        if self.unclear:  # the reply to the last step was lost
            self.wake(OPERATOR, 1.0)
            if not self._fails():
                self.seen.pop(self.unclear, None)
                self.seen |= {each: self.objects[each] for each in (self.unclear,) if each in self.objects}
                self.unclear = ""
            return
        self.check(step)
        stored = self.objects.get(name)
        self.wake(OPERATOR, 1.0)
        if self._fails() or stored is None or pod_of(stored).metadata != step.pod.metadata:
            return
        self.writes += 1
        if step.patch is None:
            self.delete(name)
        else:
            kubelet = self.kubelets[name]
            before = kubelet.wanted(MEMCACHED)
            self.put(name, self.patched(stored, step))
            kubelet.changed = self.now if kubelet.wanted(MEMCACHED) != before else kubelet.changed
        if not self.faulty or self.chance.random() < 0.9:
            self.seen[name] = self.objects[name]
            self.wake(OPERATOR, 0)
        else:
            self.unclear = name

    def patched(self, stored: Object, step: PodStep) -> Object:
        """The pod after a step that changes it."""
        return _merged(stored, step.patch or {})

    def _write_status(self, status: Object, now: datetime) -> None:
        cr = self.objects[CR]
        old: Any = cr.get("status") or {}
        new = status | {"conditions": with_transition_times(old.get("conditions", ()), status["conditions"], now)}
        if new != old and self._fails():
            self.wake(OPERATOR, 1.0)
        elif new != old:
            self.seen[CR] = {**self.seen[CR], "status": new}
            self.put(CR, {**cr, "status": new})

    def _fails(self) -> bool:
        return self.faulty and self.chance.random() < 0.05


def _denied(slot: str, at: datetime) -> Message:
    """The message of the StatefulSet's Event."""
    return Message(at, f"create Pod {slot} in StatefulSet cache failed error: exceeded quota")


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _merged(old: Object, patch: Object) -> Object:
    """A strategic merge: null removes a field, and containers are merged by name."""
    merged = dict(old)
    for name, value in patch.items():
        if name == "containers":
            changes: dict[str, Object] = {each["name"]: each for each in value}
            merged[name] = [_merged(each, changes.get(each["name"], {})) for each in old[name]]
        else:
            merged[name] = _merged(old.get(name, {}), cast("Object", value)) if isinstance(value, dict) else value
    return {name: value for name, value in merged.items() if value is not None}
