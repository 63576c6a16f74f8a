"""Pods of proxies in the phases of a change of size, and what the status shows of them."""

from dataclasses import replace
from typing import Any, Final, NamedTuple

import pytest

from memcached_api.annotations import HANDLER_ANNOTATION, RING_ANNOTATION, ROUTES_ANNOTATION
from memcached_api.images import Images
from memcached_api.memcachedproxy.types import decode_spec
from memcached_operator.engine.kind import Outcome
from memcached_operator.findings.failures import failures
from memcached_operator.findings.rules import PodRules
from memcached_operator.kube.resource import DEPLOYMENTS, Key, Object, key_of
from memcached_operator.memcachedproxy.containers import INIT_CONTAINERS
from memcached_operator.memcachedproxy.desired.deployment import Servers, deployment
from memcached_operator.memcachedproxy.references import MEMCACHEDS, Slots, reads
from memcached_operator.memcachedproxy.status import RINGS, Seen, caches, status_with
from memcached_operator.parts.ring import Move, Phase, Ring, moving, ring_of
from memcached_operator.world import kept_fields
from unit.builders import NOW, memcachedproxy, pod, rolled_out, slots, snapshot_of

SLOTS: Final = Slots("cache", "cache.test.svc.cluster.local", 11211)
IMAGES: Final = Images("memcached:1.6.45", "agent:1")


def template(ring: Ring, **spec: Any) -> Any:
    """The pod template with a ring."""
    cr = memcachedproxy(**spec)
    return deployment(cr, decode_spec(cr), IMAGES, Servers(SLOTS, 1 << 20), ring)["spec"]["template"]


def ring(phase: Phase | None, source: int = 3, target: int = 4) -> Ring:
    """The ring of a phase, or the plain one before it."""
    return Ring("cache", "u", 3) if phase is None else moving("cache", "u", Move(source, target, phase, 7))


def files(found: Any) -> list[str]:
    """The files of the volume with annotations."""
    return [item["path"] for item in found["spec"]["volumes"][0]["downwardAPI"]["items"]]


@pytest.mark.parametrize("phase", [Phase.PREPARE, Phase.MOVE, Phase.FINISH])
@pytest.mark.parametrize("monitoring", [None, {}])
def test_handler_is_only_in_phases(phase: Phase, monitoring: Any) -> None:
    spec = {} if monitoring is None else {"monitoring": monitoring}
    plain, found = template(ring(None), **spec), template(ring(phase), **spec)
    line = " ".join(found["spec"]["containers"][0]["command"])
    assert "proxy_config=routelib:/etc/podinfo/handler,proxy_arg=/etc/podinfo/routes" in line
    assert files(found) == [*files(plain), "handler"]
    assert HANDLER_ANNOTATION not in plain["metadata"]["annotations"]
    assert "function route_scale_conf" in found["metadata"]["annotations"][HANDLER_ANNOTATION]
    assert f'old = 3, new = 4, phase = "{phase.lower()}"' in found["metadata"]["annotations"][ROUTES_ANNOTATION]
    assert found["metadata"]["annotations"][RING_ANNOTATION] == f"cache/u/3>4/{phase}/7"


def test_sweep_is_only_in_prepare() -> None:
    (container,) = template(ring(Phase.PREPARE))["spec"]["initContainers"]
    assert (container["name"], container["image"]) == ("sweep", "agent:1")
    assert container["command"] == [
        "memcached-agent",
        "sweep",
        "--old=3",
        "--new=4",
        "--change=7",
        "--host=cache-{}.cache.test.svc.cluster.local",
        "--port=11211",
    ]
    others = (None, Phase.MOVE, Phase.FINISH)
    assert all("initContainers" not in template(ring(phase))["spec"] for phase in others)


def test_connections_to_the_slots_of_both_sizes() -> None:
    def limit(found: Any) -> int:
        line = found["spec"]["containers"][0]["command"]
        return int(line[line.index("-c") + 1])

    assert limit(template(ring(Phase.MOVE, 6, 2))) == limit(template(Ring("cache", "u", 6)))


def test_routes_and_handler_are_not_kept_of_pods() -> None:
    """They are larger than what may be kept of a pod."""
    meta = template(ring(Phase.MOVE))["metadata"] | {"name": "front", "namespace": "test"}
    kept = kept_fields.pod({"metadata": meta, "spec": {}, "status": {}})["metadata"]["annotations"]
    assert kept == {RING_ANNOTATION: "cache/u/3>4/Move/7"}


@pytest.mark.parametrize("phase", [Phase.PREPARE, Phase.MOVE, Phase.FINISH])
def test_ring_of_a_phase_is_read_as_it_was_written(phase: Phase) -> None:
    assert ring_of({"metadata": {"annotations": {RING_ANNOTATION: str(ring(phase))}}}) == ring(phase)


FORGED: Final = (
    *("3>3/Move/7", "0>4/Move/7", "3>1001/Move/7", "3>4/Move", "3>4/Move/0", "3>4/Plain/7", "3>4/Wait/7"),
    *("3>4/move/7", "3>4/Move/7/8", "3>4/Move/1234567890123", "+3>4/Move/7", "3>4/Move/²"),
)


@pytest.mark.parametrize("text", FORGED)
def test_annotation_of_another_client_is_no_ring_of_a_phase(text: str) -> None:
    assert ring_of({"metadata": {"annotations": {RING_ANNOTATION: f"cache/u/{text}"}}}) is None


WARM: Final[Object] = {"scaling": {"warm": {"duration": "30m"}}}
MOVING: Final[Object] = {"from": 3, "to": 4, "phase": "Move", "change": 7}
READ: Final[dict[str, tuple[int, Object, Object | None, str]]] = {
    "plain": (3, {"size": 3}, None, "3"),
    "plain, smaller": (3, {"size": 2}, None, "2"),
    "warm": (3, WARM, None, "3"),
    "warm, before the change is recorded": (3, {**WARM, "size": 2}, None, "3"),
    "Wait": (3, {**WARM, "size": 4}, {**MOVING, "phase": "Wait"}, "3"),
    "Prepare": (3, {**WARM, "size": 4}, {**MOVING, "phase": "Prepare"}, "3>4/Prepare/7"),
    "Move": (4, {**WARM, "size": 2}, MOVING, "3>4/Move/7"),
    "Move, switched off": (4, {"size": 2}, MOVING, "3>4/Move/7"),
    "Plain": (4, {**WARM, "size": 2}, {**MOVING, "phase": "Plain"}, "4"),
    "forged": (3, {**WARM, "size": 4}, {**MOVING, "to": "4"}, "3"),
    "forged sizes": (3, {**WARM, "size": 4}, {**MOVING, "to": 9999}, "3"),
}


@pytest.mark.parametrize(("servers", "spec", "scaling", "usage"), READ.values(), ids=READ.keys())
def test_ring_that_a_memcached_asks_for(servers: int, spec: Object, scaling: Object | None, usage: str) -> None:
    cr = slots(servers, spec=spec)
    cr["status"] |= {} if scaling is None else {"scaling": scaling}
    assert reads(cr).ring("cache").usage == usage


def swept(ended: Object, waiting: Object) -> Object:
    """A pod of Prepare whose sweep has failed."""
    status = {"name": "sweep", "state": waiting, "lastState": {"terminated": ended}, "restartCount": 1}
    return pod("front-1", phase="Pending", initContainerStatuses=[status])


@pytest.mark.parametrize("state", [{"running": {}}, {"waiting": {"reason": "CrashLoopBackOff"}}])
def test_sweep_that_fails_is_a_problem_of_its_own(state: Object) -> None:
    said = "slot cache-1: timed out\n"
    failed = swept({"exitCode": 1, "reason": "Error", "message": said}, state)
    rules = PodRules("MemcachedProxy", init_containers=INIT_CONTAINERS)
    (found,) = failures(snapshot_of(memcachedproxy(), pods=[failed]).pods, NOW, rules)
    assert found.reason == "SweepFailed"
    assert found.message == (
        "Pod front-1: init container sweep terminated with exit code 1 (Error): it has not removed the outdated items "
        "of all slots before the change of size: slot cache-1: timed out; see kubectl logs --previous -n test front-1 "
        "-c sweep"
    )


def test_sweep_that_has_succeeded_once_is_no_problem() -> None:
    ended = swept({"exitCode": 1, "reason": "Error"}, {"terminated": {"exitCode": 0}})
    rules = PodRules("MemcachedProxy", init_containers=INIT_CONTAINERS)
    assert failures(snapshot_of(memcachedproxy(), pods=[ended]).pods, NOW, rules) == []


def live(ring: str, *, updated: int = 2) -> Object:
    """A Deployment of two pods with a ring in its template."""
    found = rolled_out(2)
    template = {"metadata": {"annotations": {RING_ANNOTATION: ring}}}
    status = {**found["status"], "updatedReplicas": updated, "availableReplicas": updated}
    spec = {**found["spec"], "template": template}
    return {**found, "metadata": {**found["metadata"], "name": "front"}, "spec": spec, "status": status}


PLAIN, PREPARED, MOVED = "cache/cr/3", "cache/cr/3>4/Prepare/7", "cache/cr/3>4/Move/7"


class Shown(NamedTuple):
    """The ring of the template, those of pods that are known and that a list has, and what the status had.

    `usage`: what it has next; None without one. `listed`: whether pods are listed before.
    """

    template: str
    pods: tuple[str, ...]
    found: tuple[str, ...] | None
    before: str
    usage: str | None
    listed: bool = False
    updated: int = 2


SHOWN: Final[dict[str, Shown]] = {
    "shown": Shown(PLAIN, (PLAIN, PLAIN), None, "3", "3"),
    "first": Shown(PLAIN, (PLAIN, PLAIN), None, "", None, listed=True),
    "listed": Shown(PLAIN, (PLAIN, PLAIN), (PLAIN, PLAIN), "", "3"),
    "a rollout": Shown(MOVED, (PREPARED, PREPARED), None, "3>4/Prepare/7", None, updated=0),
    "a pod that stops": Shown(MOVED, (MOVED, MOVED, PREPARED), None, "", None),
    "a pod that is unknown": Shown(MOVED, (MOVED, MOVED), (MOVED, PREPARED), "", None, listed=True),
    "the rollout is complete": Shown(MOVED, (MOVED, MOVED), (MOVED,), "", "3>4/Move/7"),
    "a pod was deleted": Shown(MOVED, (MOVED,), None, "3>4/Move/7", None, updated=1),
    "an unknown ring": Shown(MOVED, (MOVED, "x"), None, "3>4/Move/7", None),
}


def prepared(**state: Object) -> Object:
    """A ready pod of Prepare. `state`: of its init container; none without one."""
    ready = [{"type": "Ready", "status": "True"}]
    statuses = [{"name": "sweep", "state": state}] if state else []
    found = pod("front-1", conditions=ready, initContainerStatuses=statuses)
    return {**found, "metadata": {**found["metadata"], "annotations": {RING_ANNOTATION: PREPARED}}}


@pytest.mark.parametrize(
    ("found", "is_swept"),
    [
        (prepared(), False),
        (prepared(running={}), False),
        (prepared(terminated={"exitCode": 1}), False),
        (prepared(terminated={"exitCode": 0}), True),
    ],
)
def test_pod_without_its_sweep_is_a_notice_and_no_proof(found: Object, is_swept: bool) -> None:
    """A policy can remove init containers: outdated items would come back."""
    deployment = live(PREPARED, updated=2)
    shown = snapshot_of(memcachedproxy(), {key_of(DEPLOYMENTS, deployment): deployment}, [found])
    conditions = status_with("cluster.local")(shown, Outcome(), NOW).status["conditions"]
    message = next(each["message"] for each in conditions if each["type"] == "Degraded")
    text = "Pod front-1 serves without the end of its init container sweep, so the change of size waits. "
    assert (text not in message, RINGS.reads(shown.pods[0]).is_swept, RINGS.needed(shown)) == (is_swept,) * 3


@pytest.mark.parametrize("row", SHOWN.values(), ids=SHOWN.keys())
def test_ring_of_all_pods_in_the_status(row: Shown) -> None:
    def annotated(name: str, text: str) -> Object:
        found = pod(name)
        return {**found, "metadata": {**found["metadata"], "annotations": {RING_ANNOTATION: text}}}

    cr = memcachedproxy()
    before = {"name": "cache", "servers": 4 if ">" in row.template else 3}
    cr["status"] = {"caches": [{**before, "ring": row.before} if row.before else before]}
    deployment = live(row.template, updated=row.updated)
    pods = [annotated(f"front-{number}", text) for number, text in enumerate(row.pods)]
    found = snapshot_of(cr, {key_of(DEPLOYMENTS, deployment): deployment}, pods)
    cache = reads(slots(3, spec=WARM, uid="cr"))
    listed = None if row.found is None else frozenset(Seen(ring_in_text(text)) for text in row.found)
    found = replace(found, referenced={Key(MEMCACHEDS, "test", "cache"): cache}, listed=listed)
    (shown,) = caches(found, decode_spec(cr))
    assert (shown.get("ring"), RINGS.needed(found)) == (row.usage, row.listed)


def ring_in_text(text: str) -> Ring | None:
    """The ring in the text of an annotation."""
    return ring_of({"metadata": {"annotations": {RING_ANNOTATION: text}}})
