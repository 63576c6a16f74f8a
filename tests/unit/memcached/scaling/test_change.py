"""The change of size in a plan: who is alone, what is listed before an arrow, deadlines, and what the status says."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import pytest

from memcached_api.annotations import OWN_PREFIX
from memcached_api.images import Images
from memcached_operator.engine.kind import Outcome, Plan
from memcached_operator.engine.writes.apply import build_intent
from memcached_operator.kube.resource import PODS, STATEFULSETS, Key, Object, Resource, key_of
from memcached_operator.memcached.controller import memcached
from memcached_operator.memcached.scaling.latch import Latch, recorded, stable
from memcached_operator.parts.ring import Phase, Use
from memcached_operator.world.knowledge import LISTED, UNLISTED, Knowledge
from memcached_operator.world.snapshot import Snapshot
from unit.builders import NOW, ago, pod, slots, snapshot_of

KIND: Final = memcached(Images("docker.io/library/memcached:1.6.45"))
PROXIES: Final = Resource("cache.example.com", "v1alpha1", "MemcachedProxy", "memcachedproxies")
FRONT: Final = Key(PROXIES, "test", "front")
POD: Final = Key(PODS, "test", "front-1")
REVISION: Final = "cache-1"
BEGAN: Final = NOW - timedelta(minutes=1)
CHANGE: Final = '{"change":7}'
SCALING: Final[Object] = {"warm": {"duration": "30m"}}


def at(phase: Phase, source: int = 3, target: int = 4, **fields: Any) -> Latch:
    """A state that began a minute ago."""
    return Latch(source, target, phase, 7, BEGAN, **fields)


def world(latch: Latch, size: int, used: dict[Key, Use], known: Knowledge = LISTED, **fields: Any) -> Snapshot:
    """A Memcached in a state, with ready slots. `used`: what proxies and their pods use."""
    cr = slots(latch.published, spec={"size": size, "scaling": fields.pop("scaling", SCALING)})
    if not latch.is_stable:
        cr["status"]["scaling"] = {"from": latch.source, "to": latch.target, "phase": str(latch.phase), "change": 7}
    cr["status"] |= fields.pop("status", {})
    (live,) = [each for each in KIND.plan(snapshot_of(cr), NOW).children or () if each["kind"] == "StatefulSet"]
    live["spec"]["replicas"] = latch.kept
    live["metadata"]["annotations"] |= latch.annotations()
    status = {"updateRevision": REVISION, "observedGeneration": 1}
    children = {key_of(STATEFULSETS, live): {**build_intent(cr, live), "status": status}}
    unready = fields.pop("unready", {})
    absent = fields.pop("absent", None)
    annotations = live["spec"]["template"]["metadata"]["annotations"]
    pods = tuple(slot(each, unready.get(each), annotations) for each in range(latch.kept) if each != absent)
    found = snapshot_of(cr, children, pods, naming={PROXIES: known}, **fields)
    return replace(found, referrers={key: {"cache": use} for key, use in used.items()})


def slot(number: int, unready: float | None, annotations: Object) -> Any:
    """The pod of a slot, which is up to date. `unready`: the seconds for which it has not been ready; None if it is."""
    since = ago(unready or 3600)
    ready = {"type": "Ready", "status": "True" if unready is None else "False", "lastTransitionTime": since}
    found = pod(f"cache-{number}", conditions=[ready])
    found["metadata"]["annotations"] = annotations
    found["metadata"]["labels"] = {**found["metadata"]["labels"], "controller-revision-hash": REVISION}
    return found


def plan(*words: Any, **fields: Any) -> Plan:
    """The plan."""
    return KIND.plan(world(*words, **fields), NOW)


def state(found: Plan) -> Phase | None:
    """The phase that a plan records; None without one."""
    (live,) = [child for child in found.children or () if child["kind"] == "StatefulSet"]
    latch = recorded(live)
    return None if latch is None else latch.phase


class Row(NamedTuple):
    """A state, the size, what proxies use; and the next phase, and whether pods are listed before it."""

    latch: Latch
    size: int
    used: dict[Key, Use]
    phase: Phase | None
    listed: bool = False
    fields: Mapping[str, Any] = MappingProxyType({})


PREPARED: Final = Use(4, "3>4/Prepare/7")
MOVED: Final = Use(4, "3>4/Move/7")
ARROWS: Final[dict[str, Row]] = {
    "stable": Row(stable(3), 3, {FRONT: Use(3, "3")}, Phase.STABLE),
    "begun": Row(stable(3), 4, {FRONT: Use(3, "3")}, Phase.WAIT),
    "begun, without proxies": Row(stable(3), 4, {}, Phase.WAIT),
    "alone": Row(at(Phase.WAIT), 4, {FRONT: Use(3, "3")}, Phase.PREPARE, listed=True),
    "a proxy that uses nothing": Row(at(Phase.WAIT), 4, {FRONT: Use(0)}, Phase.PREPARE, listed=True),
    "pods differ": Row(at(Phase.WAIT), 4, {FRONT: Use(3)}, Phase.WAIT),
    "more slots": Row(at(Phase.WAIT), 4, {FRONT: Use(4, "4")}, Phase.WAIT),
    "a slot is not ready": Row(at(Phase.WAIT), 4, {}, Phase.WAIT, fields={"unready": {3: 5.0}}),
    "given up": Row(at(Phase.WAIT), 3, {}, Phase.STABLE, listed=True),
    "next phase": Row(at(Phase.PREPARE), 4, {FRONT: PREPARED}, Phase.MOVE, listed=True),
    "a pod of a deleted proxy": Row(at(Phase.PREPARE), 4, {FRONT: PREPARED, POD: Use(3, "3")}, Phase.PREPARE),
    "another change": Row(at(Phase.PREPARE), 4, {FRONT: Use(4, "3>4/Prepare/6")}, Phase.PREPARE),
    "not published": Row(at(Phase.PREPARE), 4, {FRONT: PREPARED}, Phase.PREPARE, fields={"status": {"scaling": {}}}),
    "proxies are not listed": Row(at(Phase.PREPARE), 4, {FRONT: PREPARED}, Phase.PREPARE, fields={"known": UNLISTED}),
    "aborted": Row(at(Phase.PREPARE), 3, {FRONT: PREPARED}, Phase.STABLE),
    "a broken slot": Row(at(Phase.PREPARE), 4, {FRONT: PREPARED}, Phase.MOVE, True, {"unready": {0: 600.0}}),
    "moving": Row(at(Phase.MOVE), 4, {FRONT: MOVED}, Phase.MOVE, listed=True),
    "an absent slot": Row(at(Phase.WAIT), 4, {}, Phase.WAIT, fields={"absent": 2}),
    "an absent leaving slot": Row(
        *(at(Phase.MOVE, 4, 3, moving=BEGAN), 3, {FRONT: Use(4, "4>3/Move/7")}, Phase.MOVE, False, {"absent": 3}),
    ),
    "moved": Row(at(Phase.MOVE, moving=NOW - timedelta(minutes=30)), 4, {FRONT: MOVED}, Phase.FINISH, listed=True),
    "ended by 0s": Row(
        at(Phase.MOVE, moving=BEGAN), 4, {FRONT: MOVED}, Phase.FINISH, True, {"scaling": {"warm": {"duration": "0s"}}}
    ),
    "switched off": Row(at(Phase.MOVE, moving=BEGAN), 2, {FRONT: MOVED}, Phase.FINISH, True, {"scaling": None}),
    "switched off, stable": Row(stable(3), 3, {}, None, fields={"scaling": None}),
}


@pytest.mark.parametrize("row", ARROWS.values(), ids=ARROWS.keys())
def test_next_phase_and_list_before_it(row: Row) -> None:
    found = plan(row.latch, row.size, row.used, **row.fields)
    assert (state(found), found.needs_users, found.versioned) == (row.phase, row.listed, True)


def test_slots_are_published_and_kept_by_phase() -> None:
    def addresses(found: Plan) -> int:
        (connection,) = [child for child in found.children or () if child["kind"] == "ConfigMap"]
        return len(connection["data"]["servers"].splitlines())

    for latch, count in ((at(Phase.PREPARE, 4, 3), 4), (at(Phase.FINISH, 4, 3), 3)):
        found = plan(latch, 3, {FRONT: Use(4)})
        (live,) = [child for child in found.children or () if child["kind"] == "StatefulSet"]
        assert (live["spec"]["replicas"], addresses(found)) == (4, count)


DEADLINES: Final[dict[str, tuple[Latch, dict[str, Any], float | None]]] = {
    "stable": (stable(4), {}, None),
    "published next": (at(Phase.FINISH), {"status": {"scaling": {}}}, 1.0),
    "stuck": (at(Phase.FINISH), {}, 840.0),
    "a broken slot": (at(Phase.PREPARE), {"unready": {1: 20.0}}, 280.0),
    "a leaving slot": (at(Phase.MOVE, 4, 3), {"unready": {3: 20.0}}, 40.0),
    "the end of Move": (at(Phase.MOVE, moving=NOW - timedelta(minutes=29)), {}, 60.0),
    "the end of Move has passed": (at(Phase.MOVE, moving=NOW - timedelta(minutes=31)), {}, 840.0),
}


@pytest.mark.parametrize(("latch", "fields", "seconds"), DEADLINES.values(), ids=DEADLINES.keys())
def test_deadline(latch: Latch, fields: dict[str, Any], seconds: float | None) -> None:
    assert plan(latch, latch.target, {FRONT: Use(4)}, **fields).requeue_after == seconds


BEGINNING: Final = "The size changes from 3 to 4 slots"
LATE: Final = NOW - timedelta(minutes=16)
TEXTS: Final[dict[str, tuple[Latch, dict[Key, Use], dict[str, Any], str, str]]] = {
    "wait": (at(Phase.WAIT), {}, {"unready": {3: 5.0}}, "MovingKeys", " next; slot cache-3 is not ready"),
    "wait for proxies": (
        *(at(Phase.WAIT), {FRONT: Use(4, "4")}, {}),
        "MovingKeys",
        " next; MemcachedProxy front still uses other slots",
    ),
    "not listed": (
        *(at(Phase.PREPARE), {}, {"known": UNLISTED.failed(403, "denied")}),
        "MovingKeys",
        " in phases, now Prepare; it is not known which slots proxies use: memcachedproxies in namespace test cannot "
        "be listed: denied. Restore the operator's roles: install its release again",
    ),
    "not listed yet": (
        *(at(Phase.PREPARE), {}, {"known": UNLISTED}),
        "MovingKeys",
        " in phases, now Prepare; it is not known which slots proxies use: memcachedproxies are not listed",
    ),
    "two proxies": (
        *(at(Phase.FINISH), {FRONT: MOVED, FRONT._replace(name="second"): MOVED, POD: MOVED}, {}),
        "MovingKeys",
        " in phases, now Finish; MemcachedProxy front and 1 more still use another phase",
    ),
    "a pod of a deleted proxy": (
        *(at(Phase.FINISH), {POD: MOVED}, {}),
        "MovingKeys",
        " in phases, now Finish; Pod front-1 still uses another phase",
    ),
    "stuck": (
        *(replace(at(Phase.FINISH), since=LATE), {POD: MOVED}, {}),
        "MoveStuck",
        " in phases, now Finish; Pod front-1 still uses another phase",
    ),
    "long wait": (
        replace(at(Phase.WAIT), since=LATE),
        {},
        {"unready": {3: 5.0}},
        "MoveStuck",
        " next; slot cache-3 is not ready",
    ),
    "long move": (
        *(replace(at(Phase.MOVE, moving=LATE), since=LATE), {FRONT: MOVED}, {"unready": {0: 5.0}}),
        "MovingKeys",
        " in phases, now Move; slot cache-0 is not ready: writes of keys that move fail. Repair it, or set "
        "spec.scaling.warm.duration to 0s: items of keys that have not moved yet are lost; "
        "until 2030-01-01T12:14:00Z",
    ),
    "broken in Finish": (
        *(at(Phase.FINISH), {FRONT: Use(4, "3>4/Finish/7")}, {"unready": {0: 5.0}}),
        "MovingKeys",
        " in phases, now Finish; slot cache-0 is not ready: writes of keys that move fail. Repair it",
    ),
}


def reported(found: Snapshot) -> tuple[str, str]:
    """Reason and message of Progressing."""
    conditions = KIND.status(found, Outcome(), NOW).status["conditions"]
    return next((each["reason"], each["message"]) for each in conditions if each["type"] == "Progressing")


@pytest.mark.parametrize(("latch", "used", "fields", "reason", "text"), TEXTS.values(), ids=TEXTS.keys())
def test_what_the_status_says(
    latch: Latch, used: dict[Key, Use], fields: dict[str, Any], reason: str, text: str
) -> None:
    assert reported(world(latch, 4, used, **fields)) == (reason, BEGINNING + text)


def test_keys_that_move_do_not_prevent_readiness() -> None:
    """They move for as long as a user wants: tools wait for Ready."""

    def is_ready(found: Snapshot) -> bool:
        conditions = KIND.status(found, Outcome(), NOW).status["conditions"]
        return next(each["status"] for each in conditions if each["type"] == "Ready") == "True"

    steady = at(Phase.MOVE, moving=NOW)
    serving = {"replicas": 4, "readyReplicas": 4, "availableReplicas": 4, "updatedReplicas": 4, "observedGeneration": 1}
    for latch, used, ready in ((steady, MOVED, True), (steady, Use(4), False), (at(Phase.FINISH), MOVED, False)):
        found = world(latch, 4, {FRONT: used})
        (key,) = found.children
        live = found.children[key]
        live["status"] |= serving
        live["metadata"] |= {"generation": 1}
        assert is_ready(found) is ready


def test_next_size_follows_after_this_change() -> None:
    assert reported(world(at(Phase.MOVE), 6, {FRONT: PREPARED}))[1].endswith("; size 6 follows after it")


def test_field_of_the_status() -> None:
    latch = at(Phase.MOVE, moving=NOW)
    found = world(latch, 4, {FRONT: MOVED})
    shown = KIND.status(found, Outcome(), NOW).status
    assert shown["scaling"] == {
        "from": 3,
        "to": 4,
        "phase": "Move",
        "change": 7,
        "since": "2030-01-01T11:59:00Z",
        "until": "2030-01-01T12:30:00Z",
    }
    assert len(shown["servers"]) == 4
    assert "scaling" not in KIND.status(world(stable(3), 3, {}), Outcome(), NOW).status


def test_state_without_a_record_is_that_of_the_status() -> None:
    """As after the StatefulSet was deleted with --cascade=orphan: no proxy has seen a later one."""
    moving = world(at(Phase.MOVE), 4, {FRONT: MOVED}, scaling=None)
    assert state(KIND.plan(replace(moving, children={}), NOW)) is Phase.MOVE
    waiting = KIND.plan(replace(world(stable(3), 4, {}), children={}), NOW)
    assert state(waiting) is Phase.WAIT


def with_record(found: Snapshot, **annotations: str | None) -> Snapshot:
    """The same, but another client has changed the record."""
    (key,) = found.children
    live = found.children[key]
    changed = live["metadata"]["annotations"] | {f"{OWN_PREFIX}{name}": text for name, text in annotations.items()}
    kept = {name: text for name, text in changed.items() if text is not None}
    return replace(found, children={key: {**live, "metadata": {**live["metadata"], "annotations": kept}}})


def test_record_of_more_slots_than_exist_is_not_the_operators() -> None:
    record = {"move": '{"from":1000,"to":999,"phase":"Wait"}', "move-times": CHANGE}
    forged = with_record(world(stable(3), 3, {}), **record)
    found = KIND.plan(forged, NOW)
    (live,) = [child for child in found.children or () if child["kind"] == "StatefulSet"]
    assert (state(found), live["spec"]["replicas"]) == (Phase.STABLE, 3)


CORRECT: Final = "Correct the policy or the client that removes or changes it"
RECORD: Final = "memcached-operator.example.com/move"
LOST: Final[dict[str, tuple[Snapshot, str, str]]] = {
    "removed": (
        with_record(world(at(Phase.FINISH), 4, {FRONT: Use(4, "3>4/Finish/7")}), move=None),
        "MovingKeys",
        f"{BEGINNING} in phases, now Finish; StatefulSet cache has lost its annotation {RECORD}. {CORRECT}",
    ),
    "frozen": (
        world(replace(at(Phase.FINISH), since=LATE), 4, {FRONT: Use(4, "3>4/Finish/7")}),
        "MoveStuck",
        f"{BEGINNING} in phases, now Finish; the annotation {RECORD} of the StatefulSet does not change. {CORRECT}",
    ),
    "never begun": (
        world(stable(3), 4, {FRONT: Use(3, "3")}),
        "MoveStuck",
        "The size stays at 3 instead of 4 slots: the annotation memcached-operator.example.com/move of StatefulSet "
        f"cache does not change. {CORRECT}",
    ),
    "not in the status": (
        world(at(Phase.FINISH), 4, {FRONT: Use(4, "3>4/Finish/7")}, status={"scaling": {}}),
        "MovingKeys",
        f"{BEGINNING} in phases, now Finish; the API server does not store status.scaling; install the operator's "
        "CustomResourceDefinitions again",
    ),
    "over, but a proxy is being replaced": (
        world(replace(at(Phase.MOVE, moving=NOW - timedelta(minutes=50)), since=LATE), 4, {FRONT: Use(4)}),
        "MoveStuck",
        f"{BEGINNING} in phases, now Move; MemcachedProxy front has pods that are not updated or not available; see "
        "its conditions",
    ),
}


@pytest.mark.parametrize(("found", "reason", "text"), LOST.values(), ids=LOST.keys())
def test_what_prevents_the_next_phase_is_never_silent(found: Snapshot, reason: str, text: str) -> None:
    assert reported(found) == (reason, text)


def test_pods_keep_their_template_while_keys_move() -> None:
    """Clients must find the servers at the ports at which they listen."""
    found = plan(at(Phase.MOVE), 4, {FRONT: MOVED})
    moving = world(at(Phase.MOVE), 4, {FRONT: MOVED})
    moving.cr["spec"]["containerPort"] = 11300
    live, kept = statefulset(found), statefulset(KIND.plan(moving, NOW))
    assert kept["spec"]["template"] == live["spec"]["template"]
    applied = replace(moving, children={key_of(STATEFULSETS, kept): build_intent(moving.cr, kept)})
    shown = KIND.status(applied, Outcome(), NOW).status
    assert shown["servers"][0].endswith(":11211")


def statefulset(found: Plan) -> Object:
    """The StatefulSet of a plan."""
    (live,) = [child for child in found.children or () if child["kind"] == "StatefulSet"]
    return live
