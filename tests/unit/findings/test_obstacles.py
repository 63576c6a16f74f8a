"""The statuses are those that a kubelet, the scheduler and controllers of release 1.35 report."""

from collections.abc import Mapping
from typing import Any

import pytest

from kubectl_memcached.model.scheduling import remedy as plugin_remedy
from memcached_api.remedies import Action, Remedy
from memcached_operator.appservice.containers import SCHEDULING as APPSERVICE
from memcached_operator.findings.obstacles import obstacles
from memcached_operator.findings.rules import OwnContainer, PodRules
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.containers import SCHEDULING as MEMCACHED
from memcached_operator.memcachedproxy.containers import SCHEDULING as PROXY
from unit.builders import NOW, ago, container, deleted, pod, typed

RULES = PodRules(
    "Memcached",
    {"memcached": OwnContainer("spec.image", Action("name a Secret"), (Action("raise the limit"),))},
    scheduling={"Insufficient cpu": (Action("lower it"),), "node affinity": (Action("correct it"),)},
    loss_by=lambda actions: f". {len(actions)} items are lost",
)
GATE = "example.com/lb"
RUNNING = container({"running": {}}, ready=True)
CREATING = container({"waiting": {"reason": "PodInitializing"}})


def condition(name: str, status: str = "True", since: float = 300, **fields: str) -> Object:
    """A condition of a pod."""
    return {"type": name, "status": status, "lastTransitionTime": ago(since), **fields}


SCHEDULED, SANDBOX = condition("PodScheduled"), condition("PodReadyToStartContainers")
UNREADY, CONTAINERS = condition("Ready", "False"), condition("ContainersReady")


def unscheduled(reason: str, message: str = "") -> Object:
    """The condition of a pod without a node."""
    return condition("PodScheduled", "False", reason=reason, message=message)


def of(obj: Object, **parts: Any) -> Object:
    """This pod with parts of its spec, and with metadata if a part is named so."""
    meta = parts.pop("metadata", {})
    return {**obj, "metadata": {**obj["metadata"], **meta}, "spec": parts}


def started(*conditions: Object, init: Any = (), containers: Any = (RUNNING,)) -> Object:
    """A pod on a node, that is not ready."""
    return pod(
        conditions=[SCHEDULED, SANDBOX, UNREADY, *conditions],
        initContainerStatuses=list(init),
        containerStatuses=list(containers),
    )


def running(name: str, since: float = 300, **status: Any) -> Object:
    """The status of a running container of another client."""
    return {"name": name, "ready": False, "state": {"running": {"startedAt": ago(since)}}, **status}


def gated(*conditions: Object, since: float = 300) -> Object:
    """A pod with a readiness gate that runs."""
    gates = [{"conditionType": GATE}]
    return of(started(condition("ContainersReady", since=since), *conditions), readinessGates=gates)


def terminating(ended: float, *, finalizers: Any = (), conditions: Any = ()) -> Object:
    """A pod whose grace period ended some seconds ago."""
    meta = {"deletionTimestamp": ago(ended), **({"finalizers": list(finalizers)} if finalizers else {})}
    return of(started(*conditions), metadata=meta, nodeName="n1")


def failed(reason: str, message: str = "", seen: float = 10, name: str = "cache-1") -> Object:
    """A pod that has failed as a whole."""
    conditions = [condition("DisruptionTarget", since=seen)]
    return pod(name, phase="Failed", reason=reason, message=message, conditions=conditions)


DESCRIBE = "see the Events in kubectl describe pod -n test cache-1"
PENDING_GATES = of(
    pod(phase="Pending", conditions=[unscheduled("SchedulingGated", "Scheduling is blocked")]),
    schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/b"}],
    metadata={"creationTimestamp": ago(300)},
)
SIDECAR = {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}
OBSTACLES: dict[str, tuple[Object, str]] = {
    "no node fits": (
        pod(phase="Pending", conditions=[unscheduled("Unschedulable", "0/1 nodes: no memory")]),
        "pod cache-1 cannot be scheduled: 0/1 nodes: no memory",
    ),
    "no node fits, without what follows about preemption": (
        pod(
            phase="Pending",
            conditions=[
                unscheduled(
                    "Unschedulable",
                    "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector. "
                    "no new claims to deallocate, preemption: 0/2 nodes are available: 2 Preemption is not helpful.",
                )
            ],
        ),
        "pod cache-1 cannot be scheduled: 0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's "
        "node affinity/selector. Lower it; or correct it. 2 items are lost",
    ),
    "the scheduler fails": (
        pod(phase="Pending", conditions=[unscheduled("SchedulerError", "plugin x: timeout")]),
        "pod cache-1 cannot be scheduled: plugin x: timeout",
    ),
    "a scheduler gives only a reason": (
        pod(phase="Pending", conditions=[unscheduled("QueueClosed")]),
        "pod cache-1 cannot be scheduled: QueueClosed",
    ),
    "scheduling gates": (
        PENDING_GATES,
        "pod cache-1 waits for its scheduling gates example.com/a, example.com/b. They are not part of this Memcached: "
        "the controller that adds them must remove them",
    ),
    "an init container that runs": (
        started(init=[running("wait")], containers=[CREATING]),
        "pod cache-1 waits for init container wait, which is not part of this Memcached; see kubectl logs -n test "
        "cache-1 -c wait",
    ),
    "a sidecar container that does not become started": (
        of(started(init=[running("proxy", started=False)], containers=[CREATING]), **SIDECAR),
        "pod cache-1 waits for sidecar container proxy, which is not part of this Memcached; see kubectl logs -n test "
        "cache-1 -c proxy",
    ),
    "a sidecar container that is not ready": (
        of(started(init=[running("proxy", started=True)]), **SIDECAR),
        "pod cache-1 waits until sidecar container proxy, which is not part of this Memcached, is ready; see kubectl "
        "logs -n test cache-1 -c proxy",
    ),
    "another container that is not ready": (
        started(containers=[RUNNING, running("proxy")]),
        "pod cache-1 waits until container proxy, which is not part of this Memcached, is ready; see kubectl logs -n "
        "test cache-1 -c proxy",
    ),
    "no volume, no network": (
        pod(
            phase="Pending",
            conditions=[SCHEDULED, condition("PodReadyToStartContainers", "False"), UNREADY],
            containerStatuses=[container({"waiting": {"reason": "ContainerCreating"}})],
        ),
        f"pod cache-1 has not started: its volumes or its network are not ready; {DESCRIBE}",
    ),
    "no status of the kubelet": (
        of(pod(phase="Pending", conditions=[SCHEDULED, condition("DisruptionTarget")]), nodeName="n1"),
        "pod cache-1 has not started: its node n1 has not accepted it",
    ),
    "the image is pulled": (
        started(containers=[CREATING]),
        f"pod cache-1 waits for the image of container memcached; {DESCRIBE}",
    ),
    "a readiness gate without its condition": (
        gated(),
        f"pod cache-1 waits for its readiness gate {GATE} (not set). It is not part of this Memcached: correct the "
        "controller that sets this condition of the pod",
    ),
    "a readiness gate that is False": (
        gated(condition(GATE, "False", reason="Unhealthy", message="no target\nat all")),
        f'pod cache-1 waits for its readiness gate {GATE} ("no target\\nat all"). It is not part of this Memcached: '
        "correct the controller that sets this condition of the pod",
    ),
    "a node that does not report": (
        of(started(CONTAINERS), nodeName="n1"),
        "pod cache-1 is not ready, because its node n1 does not report its state",
    ),
    "a deletion that the node does not confirm": (
        terminating(90, conditions=[condition("DisruptionTarget", message="Taint manager: deleting")]),
        "pod cache-1 is still being deleted (Taint manager: deleting): its node n1 does not confirm it. Only if that "
        "node is switched off, run kubectl delete pod --force --wait=false -n test cache-1",
    ),
    "a deletion that finalizers block": (
        terminating(90, finalizers=["example.com/1", "example.com/2", "example.com/3", "example.com/4"]),
        "pod cache-1 is still being deleted: its finalizers example.com/1, example.com/2, example.com/3 and 1 more "
        "block it",
    ),
    "a pod that has ended, and which finalizers hold": (
        terminating(90, finalizers=["example.com/1"]) | {"status": {"phase": "Succeeded"}},
        "pod cache-1 is still being deleted: its finalizer example.com/1 blocks it",
    ),
    "a rejected pod": (
        failed("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu"),
        "a pod failed with the reason OutOfcpu: Pod was rejected: Node didn't have enough resource: cpu",
    ),
    "an evicted pod without a message": (failed("Evicted"), "a pod failed with the reason Evicted"),
}


REPAIR = "Repair or uncordon the node if the taint begins with node.kubernetes.io, otherwise "
TAINTED = {
    "Memcached": (MEMCACHED, "add spec.podTemplate.spec.tolerations, or remove the taint"),
    "MemcachedProxy": (PROXY, "add spec.podTemplate.spec.tolerations, or remove the taint"),
    "AppService": (APPSERVICE, "remove the taint, or add a node"),
}


@pytest.mark.parametrize("taint", ["(s)", " {node.kubernetes.io/not-ready: }", " {example.com/a: b}"])
@pytest.mark.parametrize(("remedies", "remedy"), TAINTED.values(), ids=TAINTED)
def test_taint_has_a_remedy_whether_or_not_kubernetes_has_set_it(
    remedies: Mapping[str, Remedy], remedy: str, taint: str
) -> None:
    """Since release 1.35, the scheduler does not name the taint. A toleration binds pods to a broken node."""
    text = f"0/3 nodes are available: 3 node(s) had untolerated taint{taint}."
    obj = pod(phase="Pending", conditions=[unscheduled("Unschedulable", text)])
    (found,) = obstacles(typed(obj), NOW, PodRules("Memcached", scheduling=remedies))
    assert found.message == f"pod cache-1 cannot be scheduled: {text} {REPAIR}{remedy}"


CONSTRAINTS = "didn't match pod topology spread constraints"
LABEL = "label the nodes with the topologyKey of spec.podTemplate.spec.topologySpreadConstraints, or correct it"
RELAX = "relax spec.podTemplate.spec.topologySpreadConstraints, or add a node"
SPREAD = {
    f"0/2 nodes are available: 2 node(s) {CONSTRAINTS} (missing required label).": LABEL,
    f"0/2 nodes are available: 2 node(s) {CONSTRAINTS}.": RELAX,
    f"0/2 nodes are available: 1 node(s) {CONSTRAINTS}, 1 node(s) {CONSTRAINTS} (missing required label).": (
        f"{LABEL}; or {RELAX}"
    ),
}


@pytest.mark.parametrize("remedies", [MEMCACHED, PROXY], ids=["Memcached", "MemcachedProxy"])
@pytest.mark.parametrize(("text", "remedy"), SPREAD.items())
def test_nodes_without_the_label_of_a_spread_constraint(text: str, remedy: str, remedies: Mapping[str, Remedy]) -> None:
    """More nodes without it do not help."""
    obj = pod(phase="Pending", conditions=[unscheduled("Unschedulable", text)])
    (found,) = obstacles(typed(obj), NOW, PodRules("Memcached", scheduling=remedies))
    assert found.message == f"pod cache-1 cannot be scheduled: {text} {remedy[0].upper()}{remedy[1:]}"
    assert plugin_remedy(text).text == f". {remedy[0].upper()}{remedy[1:]}"


@pytest.mark.parametrize(("obj", "message"), OBSTACLES.values(), ids=OBSTACLES.keys())
def test_pod_that_waits_says_for_what(obj: Object, message: str) -> None:
    (found,) = obstacles(typed(obj), NOW, RULES)
    assert (found.message, found.after) == (message, 0)


NORMAL: dict[str, tuple[Object, float]] = {
    "scheduling gates": (
        {**PENDING_GATES, "metadata": {**PENDING_GATES["metadata"], "creationTimestamp": ago(10)}},
        50,
    ),
    "an init container": (started(init=[running("wait", since=45)], containers=[CREATING]), 15),
    "an image": (
        pod(
            conditions=[SCHEDULED, condition("PodReadyToStartContainers", since=59), UNREADY],
            containerStatuses=[CREATING],
        ),
        1,
    ),
    "a node": (pod(phase="Pending", conditions=[condition("PodScheduled", since=20)]), 40),
    "volumes": (pod(phase="Pending", conditions=[condition("PodScheduled", since=20), UNREADY]), 40),
    "a readiness gate": (gated(since=30), 30),
    "another container": (
        pod(
            conditions=[SCHEDULED, SANDBOX, condition("Ready", "False", since=5)],
            containerStatuses=[RUNNING, running("proxy")],
        ),
        55,
    ),
    "a deletion within the grace period": (terminating(-30), 90),
    "a time in the future": (started(init=[running("wait", since=-9)], containers=[CREATING]), 60),
}


@pytest.mark.parametrize(("obj", "after"), NORMAL.values(), ids=NORMAL.keys())
def test_step_that_takes_less_than_a_minute_is_reported_later(obj: Object, after: float) -> None:
    """So a normal start costs no write of the status."""
    (found,) = obstacles(typed(obj), NOW, RULES)
    assert found.after == after


UNHINDERED: dict[str, Object] = {
    "ready": pod(conditions=[condition("Ready")]),
    "just created": pod(phase="Pending"),
    "serves while its agent is not ready": started(
        condition("ContainersReady", "False"), containers=[RUNNING, {**RUNNING, "name": "memcached", "ready": False}]
    ),
    "crashes, which is a failure": started(
        condition("ContainersReady", "False"),
        containers=[container({"waiting": {"reason": "CrashLoopBackOff"}}, ended={"exitCode": 1})],
    ),
    "failed without a reason": pod(phase="Failed"),
    "evicted long ago": failed("Evicted", seen=601),
    "completed": pod(phase="Succeeded"),
    "being deleted, with an invalid time": {**deleted(pod()), "metadata": {"name": "a", "deletionTimestamp": "soon"}},
    "its kubelet has not reported yet that its readiness gate is met": of(
        pod(
            conditions=[
                *(SCHEDULED, SANDBOX, CONTAINERS, condition(GATE)),
                condition("Ready", "False", reason="ReadinessGatesNotReady"),
            ],
            containerStatuses=[RUNNING],
        ),
        readinessGates=[{"conditionType": GATE}],
    ),
    "its init container has ended": started(
        condition("ContainersReady", "False"),
        init=[{"name": "wait", "ready": True, "state": {"terminated": {"exitCode": 0}}}],
        containers=[{**RUNNING, "ready": False}],
    ),
}


@pytest.mark.parametrize("obj", UNHINDERED.values(), ids=UNHINDERED.keys())
def test_no_obstacle(obj: Object) -> None:
    assert obstacles(typed(obj), NOW, RULES) == []


def test_obstacles_are_sorted_by_pod_name_and_only_the_last_failed_pod_counts() -> None:
    """The names of failed pods are left out: while each new pod is rejected, the message must not change."""
    waiting = [of(started(CONTAINERS), metadata={"name": name}, nodeName="n") for name in ("b", "a")]
    rejected = [failed(reason, seen=seen, name=f"x{seen}") for seen, reason in ((50, "Evicted"), (5, "OutOfpods"))]
    messages = [found.message for found in obstacles(typed(*rejected, *waiting), NOW, RULES)]
    assert [message.split(" is ")[0] for message in messages] == [
        "pod a",
        "pod b",
        "a pod failed with the reason OutOfpods",
    ]


def test_pods_that_no_node_takes_for_the_same_reason_share_a_message() -> None:
    waiting = [
        pod(f"cache-{number}", phase="Pending", conditions=[unscheduled("Unschedulable", text)])
        for number, text in enumerate(("no memory", "a taint", "no memory", "no memory", "no memory", "no memory"))
    ]
    assert [found.message for found in obstacles(typed(*waiting), NOW, RULES)] == [
        "pods cache-0, cache-2, cache-3 and 2 more cannot be scheduled: no memory",
        "pod cache-1 cannot be scheduled: a taint",
    ]


def test_texts_of_others_are_short_and_on_one_line() -> None:
    long = "x" * 90_000
    gates = of(PENDING_GATES, schedulingGates=[{"name": long}] * 9, metadata={"creationTimestamp": ago(300)})
    found = [gates, gated(condition(GATE, "False", message=f"a\n{long}")), failed(long, f"\x1b{long}")]
    for obj in found:
        (obstacle,) = obstacles(typed(obj), NOW, RULES)
        assert len(obstacle.message) < 1300
        assert obstacle.message.isprintable()
