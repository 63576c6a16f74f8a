"""Pods of proxies in the phases of a change of size, and what the status shows of them."""

from typing import Any, Final

import pytest

from memcached_api.annotations import HANDLER_ANNOTATION, RING_ANNOTATION, ROUTES_ANNOTATION
from memcached_api.images import Images
from memcached_api.memcachedproxy.types import decode_spec
from memcached_operator.kube.resource import Object
from memcached_operator.memcachedproxy.desired.deployment import Servers, deployment
from memcached_operator.memcachedproxy.references import Slots, reads
from memcached_operator.parts.ring import Move, Phase, Ring, moving, ring_of
from memcached_operator.world import kept_fields
from unit.builders import memcachedproxy, slots

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
