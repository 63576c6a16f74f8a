"""A change of the size of a cache in phases, in `status`, `find` and `ring`."""

import json
from typing import Any

import pytest

from kubectl_memcached.model import proxies as model
from kubectl_memcached.model import scaling
from kubectl_memcached.model.proxies import Ring, rings
from kubectl_memcached.model.scaling import FINISH, MOVE, PREPARE, Move
from kubectl_memcached.ring.proxies import slot_of
from memcached_api.annotations import RING_ANNOTATION
from memcached_operator.parts import ring as published
from memcached_operator.parts.ring import Phase
from unit.plugin.conftest import Run, World
from unit.plugin.samples import PROXIES, memcached, proxy

Object = dict[str, Any]

CHANGE = 1764583200
ITEM = "ME {key} exp=3599 la=42 cas=9 fetch=yes cls=3 size=1234\r\n"
KEYS = [f"k{number}" for number in range(99)]
STAYS = next(key for key in KEYS if slot_of(key.encode(), 4) < 3)
MOVES = next(key for key in KEYS if slot_of(key.encode(), 4) == 3)
OLD = f"sessions-{slot_of(MOVES.encode(), 3)}"
NEW = "sessions-3"
ROUTES = {
    PREPARE: f"They look for this key in {OLD}, and then in {NEW} if it is missing. They write it to {OLD}, and delete "
    f"it in {NEW}.",
    MOVE: f"They look for this key in {NEW}, and then in {OLD} if it is missing. They write it to {NEW}, and delete it "
    f"in {OLD}.",
    FINISH: f"They look for this key in {NEW}. They write it to {NEW}, and delete it in {OLD}.",
}


def usage(source: int, target: int, phase: str) -> published.Ring:
    """The ring of a phase as the operator writes it."""
    return published.moving("sessions", "u", published.Move(source, target, Phase(phase), CHANGE))


def proxy_pod(name: str, ring: published.Ring) -> Object:
    """A running pod of a proxy."""
    annotations = {RING_ANNOTATION: str(ring)}
    return {"metadata": {"name": name, "namespace": "shop", "annotations": annotations}, "status": {"phase": "Running"}}


def use(world: World, *rings: published.Ring, has: tuple[str, ...] = ()) -> None:
    """A cache with four slots, and a proxy with a pod for each ring. `has`: the pods that have the keys."""
    world.use(memcached({"size": 4}), 4)
    pods = [proxy_pod(f"front-{number}", ring) for number, ring in enumerate(rings)]
    world.kubectl.objects |= {PROXIES: [proxy(slots=4)], "pods": [*world.pods, *pods]}
    for slot, stub in enumerate(world.stubs):
        found = {f"me {key}": ITEM.format(key=key) for key in (MOVES, STAYS)}
        none = dict.fromkeys(found, "EN\r\n")
        stub.replies = {**stub.replies, **(found if f"sessions-{slot}" in has else none)}


def words(text: str) -> str:
    """A text without line breaks."""
    return " ".join(text.split())


@pytest.mark.parametrize("phase", ROUTES)
@pytest.mark.parametrize("place", [OLD, NEW])
def test_find_asks_both_places_of_a_key_that_moves(place: str, phase: str, world: World, run: Run) -> None:
    use(world, usage(3, 4, phase), has=(place,))
    result = run("find", "front", MOVES)
    sentence = f"The proxies of shop/front are in phase {phase} of a change from 3 to 4 slots of Memcached sessions."
    assert f"{sentence} {ROUTES[phase]}" in words(result.output)
    assert result.code == 0
    first, second = (NEW, OLD) if phase != PREPARE else (OLD, NEW)
    document = json.loads(run("find", "front", MOVES, "-o", "json").output)
    assert [each["pod"] for each in document["pods"] if each["item"]] == [place]
    (route,) = document["routes"]
    assert (route["pod"], route["otherPod"]) == (first, second)
    assert route["move"] == {"from": 3, "to": 4, "phase": phase}


@pytest.mark.parametrize("phase", ROUTES)
def test_find_asks_one_slot_for_a_key_that_does_not_move(phase: str, world: World, run: Run) -> None:
    slot = slot_of(STAYS.encode(), 3)
    use(world, usage(3, 4, phase), has=(f"sessions-{slot}",))
    text = words(run("find", "front", STAYS).output)
    slots = 3 if phase == PREPARE else 4
    assert f"The proxies of shop/front send this key to slot {slot} of {slots} of Memcached sessions" in text
    asked = [number for number, stub in enumerate(world.stubs) if f"me {STAYS}" in stub.commands]
    assert asked == [slot]


def test_key_at_both_places_has_a_cause(world: World, run: Run) -> None:
    use(world, usage(3, 4, MOVE), has=(OLD, NEW))
    assert "2 pods have the key: a write of it has not ended, or has failed." in run("find", "front", MOVES).output


def test_find_shows_both_phases_of_a_rollout(world: World, run: Run) -> None:
    use(world, usage(3, 4, PREPARE), usage(3, 4, MOVE), usage(3, 4, MOVE), has=(OLD,))
    text = words(run("find", "front", MOVES).output)
    assert (
        f"2 proxies of shop/front are in phase Move of a change from 3 to 4 slots of Memcached sessions. {ROUTES[MOVE]}"
        in text
    )
    assert "1 proxy of shop/front is in phase Prepare of a change from 3 to 4 slots" in text


@pytest.mark.parametrize(("sizes", "share"), [((3, 4), "25.0 %"), ((4, 3), "25.0 %")])
@pytest.mark.parametrize("phase", ROUTES)
def test_ring_shows_both_shares(phase: str, sizes: tuple[int, int], share: str, world: World, run: Run) -> None:
    use(world, usage(*sizes, phase))
    result = run("ring", "front")
    text = words(result.output)
    assert result.code == 0
    assert (
        f"The proxies of shop/front are in phase {phase} of a change from {sizes[0]} to {sizes[1]} slots of Memcached "
        f"sessions, in which {share} of the keys move. They look for such a key in its "
    ) in text
    shares = {3: "33.3 %", 4: "25.0 %"}
    rows = [row.split("  ") for row in result.output.splitlines() if row.startswith("sessions-")]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert cells == [
        *([f"sessions-{slot}", shares[sizes[0]], shares[sizes[1]]] for slot in range(3)),
        ["sessions-3", *("25.0 %" if size == 4 else "-" for size in sizes)],
    ]
    (found,) = json.loads(run("ring", "front", "-o", "json").output)["rings"]
    assert len(found["slots"]) == (sizes[0] if phase == PREPARE else sizes[1])
    assert (found["move"]["phase"], found["otherSizes"]) == (phase, [])


def test_ring_names_proxies_of_several_phases(world: World, run: Run) -> None:
    use(world, published.Ring("sessions", "u", 3), usage(3, 4, PREPARE))
    text = words(run("ring", "front").output)
    assert "1 proxy of shop/front is in phase Prepare" in text
    assert "1 proxy of shop/front distributes keys over 3 slots" in text
    assert "The proxies use different phases: a rollout is not complete." in text


def change(world: World, **fields: Any) -> None:
    """The status of the Memcached shows a change of size."""
    world.cr["status"]["scaling"] = {"from": 3, "to": 4, "change": CHANGE, "since": "2025-12-01T10:00:00Z", **fields}


@pytest.mark.parametrize(
    ("fields", "lines"),
    [
        ({"phase": "Wait", "waitingFor": "slot 3"}, ["Wait, 1 of 5, for 10m", "waits: slot 3"]),
        ({"phase": "Move", "until": "2025-12-01T10:30:00Z"}, ["Move, 3 of 5, for 10m, ends in 20m"]),
        ({"phase": "Move", "until": "2025-12-01T10:05:00Z"}, ["Move, 3 of 5, for 10m"]),
        ({"phase": "Later"}, ["Later, for 10m"]),
    ],
)
def test_status_shows_the_change(
    fields: Object, lines: list[str], world: World, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    change(world, **fields)
    monkeypatch.setattr("time.time", lambda: CHANGE + 600.0)
    first, *rest = lines
    assert (
        f"\nchanges from 3 to 4 slots: phase {first}\n" + "".join(f"{line}\n" for line in rest)
        in run("status", "sessions").output
    )
    document = json.loads(run("status", "sessions", "-o", "json").output)["scaling"]
    assert document == {**dict.fromkeys(scaling.FIELDS), **fields, "from": 3, "to": 4, "since": "2025-12-01T10:00:00Z"}


def test_status_without_a_change_is_as_before(world: World, run: Run) -> None:
    assert "changes from" not in run("status", "sessions").output
    assert "scaling" not in json.loads(run("status", "sessions", "-o", "json").output)


@pytest.mark.parametrize(
    ("ring", "slots"), [(str(usage(3, 4, MOVE).usage), "3→4"), ("4", "4"), ("", "4"), ("3>4/Later/7", "4")]
)
def test_slots_of_a_proxy_in_a_phase(ring: str, slots: str, world: World) -> None:
    found = proxy(slots=4)
    found["status"]["caches"][0]["ring"] = ring
    change(world, phase="Move")
    world.cr["status"]["servers"] = ["a", "b", "c"]
    assert model.slots(found, world.cr) == slots


ANNOTATIONS: dict[str, Ring | None] = {
    str(usage(3, 4, PREPARE)): Ring("sessions", 4, 1, Move(3, 4, PREPARE)),
    str(usage(1000, 1, MOVE)): Ring("sessions", 1000, 1, Move(1000, 1, MOVE)),
    str(usage(3, 4, FINISH)): Ring("sessions", 4, 1, Move(3, 4, FINISH)),
    "sessions/u/3>1001/Move/1": None,
    "sessions/u/3>3/Move/1": None,
    "sessions/u/0>3/Move/1": None,
    "sessions/u/3>4/Plain/1": None,
    "sessions/u/3>4/move/1": None,
    "sessions/u/3>4/Move/0": None,
    "sessions/u/3>4/Move/": None,
    "sessions/u/3>4/Move/1\n": None,
    "--token/u/3>4/Move/1": None,
}


@pytest.mark.parametrize(("text", "expected"), ANNOTATIONS.items(), ids=[text[:24] for text in ANNOTATIONS])
def test_only_phases_as_the_operator_writes_them_are_used(text: str, expected: Ring | None) -> None:
    pod = proxy_pod("front-a", usage(3, 4, MOVE))
    pod["metadata"]["annotations"][RING_ANNOTATION] = text
    assert rings(proxy(slots=2), [pod]) == [expected or Ring("sessions", 2, 0)]


def test_phases_are_those_of_the_operator() -> None:
    assert [*scaling.PHASES] == [str(phase) for phase in Phase if phase is not Phase.STABLE]
    assert {*scaling.ROUTES} == {str(phase) for phase in published.MOVING}
