"""The children of a MemcachedProxy, for each state of the Memcached that it names."""

import re
from datetime import timedelta
from typing import Any

import pytest

from memcached_api.annotations import RING_ANNOTATION
from memcached_api.images import Images
from memcached_operator.engine.kind import Outcome, Plan
from memcached_operator.engine.writes.apply import build_intent
from memcached_operator.kube.resource import DEPLOYMENTS, POD_MONITORS, SERVICES, Key, Object, key_of
from memcached_operator.kube.selectors import Selector
from memcached_operator.memcachedproxy.controller import memcachedproxy as controller
from memcached_operator.memcachedproxy.references import MEMCACHEDS, reads
from memcached_operator.world.knowledge import LISTED, NOT_SERVED
from memcached_operator.world.other_budgets import Budget, OtherBudgets
from unit.builders import NOW, announced, memcached, memcachedproxy, slots, snapshot_of

IMAGE = "docker.io/library/memcached:1.6.45"
KIND = controller(Images(IMAGE))
CR = memcachedproxy()
KEY = Key(MEMCACHEDS, "test", "cache")


def plan(cache: Object | None, live: Object | None = None, cr: Object = CR, **parts: Any) -> Plan:
    """The plan with this Memcached and this Deployment. A `cr` without a status gets one that has 3 slots."""
    cr = cr if "status" in cr else announced(cr)
    children = {} if live is None else {key_of(DEPLOYMENTS, live): live}
    referenced = {} if cache is None else {KEY: reads(cache)}
    return KIND.plan(snapshot_of(cr, children, referenced=referenced, **parts), NOW)


def deployment(found: Plan) -> Object:
    """The Deployment of a plan, as the API server stores it."""
    (child,) = [child for child in found.children or () if child["kind"] == "Deployment"]
    return build_intent(CR, child)


def ring(found: Plan) -> str:
    """The ring in the pod template."""
    return deployment(found)["spec"]["template"]["metadata"]["annotations"][RING_ANNOTATION]


def live(servers: int = 3) -> Object:
    """A Deployment with this ring."""
    return deployment(plan(slots(servers), cr=announced(CR, servers)))


def kinds(found: Plan) -> list[str] | None:
    """The kinds of the children; None if they are not changed."""
    return None if found.children is None else [child["kind"] for child in found.children]


UNUSABLE: dict[str, tuple[Object | None, str, bool]] = {
    "missing": (None, "ReferenceNotFound", True),
    "being deleted": (slots(3, deletionTimestamp="2030-01-01T12:00:00Z"), "ReferenceNotFound", True),
    "Pooled": (memcached(size=3), "ReferenceInvalid", True),
    "with passwords": (slots(3, spec={"auth": {"secretName": "a"}}), "ReferenceInvalid", True),
    "with TLS only": (slots(3, spec={"tls": {"secretName": "a"}}), "ReferenceInvalid", True),
    "too old": (slots(3, spec={"image": "memcached:1.6.38"}), "ReferenceInvalid", True),
    "without addresses": (memcached(identity="Stable", image=IMAGE), "RollingOut", True),
}


@pytest.mark.parametrize(("cache", "reason", "blocks"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_only_the_service_is_created_without_a_cache(cache: Object | None, reason: str, blocks: bool) -> None:
    found = plan(cache)
    assert kinds(found) == ["Service"]
    assert [(each.reason, each.blocks) for each in found.problems] == [(reason, blocks)]


@pytest.mark.parametrize(("cache", "reason", "blocks"), UNUSABLE.values(), ids=UNUSABLE.keys())
def test_pods_that_serve_are_not_changed_when_the_cache_cannot_be_used(
    cache: Object | None, reason: str, blocks: bool
) -> None:
    found = plan(cache, live())
    assert found.children is None
    assert [(each.reason, each.blocks) for each in found.problems] == [(reason, blocks)]


def test_children_with_a_cache() -> None:
    found = plan(slots(3))
    assert (kinds(found), found.problems, found.notices) == (["Deployment", "Service"], (), ())
    assert ring(found) == "cache/cr/3"


def test_first_slots_are_used_when_the_status_contains_them() -> None:
    before = plan(slots(3), cr=announced(CR, 2))
    assert (kinds(before), before.requeue_after) == (["Service"], 1)
    assert [each.message for each in before.problems] == ["The proxies use 3 slots of Memcached cache next"]
    assert kinds(plan(slots(3), cr=announced(CR, 3))) == ["Deployment", "Service"]


def starting(ready: int, *, age: float, available: str = "False") -> Object:
    """A Memcached with 3 slots that was created some seconds ago."""
    cache = slots(3, ready=ready, creationTimestamp=(NOW - timedelta(seconds=age)).isoformat())
    return {**cache, "status": {**cache["status"], "conditions": [{"type": "Available", "status": available}]}}


def available(cache: Object) -> bool:
    """Whether its status says so, or nothing of it."""
    found = cache["status"].get("conditions", ())
    return all(each["status"] == "True" for each in found if each["type"] == "Available")


STARTING: dict[str, tuple[Object, bool, float | None]] = {
    "no slot": (starting(0, age=10), False, None),
    "no slot of an older one": (starting(0, age=3600), False, None),
    "one slot": (starting(1, age=10), False, 50),
    "one slot of an older one": (starting(1, age=60), True, None),
    "one slot of one whose age is not known": (slots(3, ready=1), True, None),
    "one slot of one from the future": (starting(1, age=-5), True, None),
    "all slots": (starting(3, age=1), True, None),
    "slots that warm up": (starting(0, age=10, available="True"), True, None),
}
"""A Memcached; whether first proxies start, and the seconds after which the plan is made again."""


@pytest.mark.parametrize(("cache", "starts", "delay"), STARTING.values(), ids=STARTING.keys())
def test_first_proxies_start_when_slots_are_ready(cache: Object, starts: bool, delay: float | None) -> None:
    found = plan(cache)
    away = [] if available(cache) else ["Memcached cache is not available; see its conditions"]
    messages = away if starts else ["The proxies use Memcached cache when its slots are ready; see its conditions"]
    assert [each.message for each in found.problems] == messages
    assert (kinds(found), found.requeue_after) == (["Deployment", "Service"] if starts else ["Service"], delay)
    # The status announces the slots meanwhile.
    assert plan(cache, cr=announced(CR, 2)).requeue_after == 1
    # Proxies that use it do not wait. Those of a deleted Memcached of the same name do.
    assert [each.message for each in plan(cache, live()).problems] == away
    again = plan({**cache, "metadata": {**cache["metadata"], "uid": "new"}}, live())
    assert [each.message for each in again.problems] == messages
    assert (again.children is not None, again.requeue_after) == (starts, delay)


def test_slots_of_a_recreated_cache_are_used_when_the_status_contains_them() -> None:
    recreated = slots(4, uid="new")
    assert plan(recreated, live()).children is None
    assert ring(plan(recreated, live(), announced(CR, 4))) == "cache/new/4"


def test_all_children() -> None:
    found = plan(slots(3), cr=memcachedproxy(podDisruptionBudget={}, networkPolicy={}))
    assert kinds(found) == ["Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"]


def names(found: Plan) -> list[str]:
    """The names of the containers."""
    return [each["name"] for each in deployment(found)["spec"]["template"]["spec"]["containers"]]


AGENTS: dict[str, tuple[Object, list[str]]] = {
    "nothing": ({}, ["proxy"]),
    "metrics": ({"monitoring": {}}, ["proxy", "agent"]),
    "disabled metrics": ({"monitoring": {"enabled": False, "podMonitor": {}}}, ["proxy"]),
    "TLS": ({"tls": {"secretName": "a"}}, ["proxy", "agent"]),
}


@pytest.mark.parametrize(("spec", "expected"), AGENTS.values(), ids=AGENTS.keys())
def test_agent_runs_only_if_it_is_needed(spec: Object, expected: list[str]) -> None:
    found = plan(slots(3), cr=memcachedproxy(**spec))
    assert names(found) == expected
    assert "PodMonitor" not in (kinds(found) or ())


def test_pod_monitor_needs_its_api() -> None:
    cr = memcachedproxy(monitoring={"podMonitor": {}})
    assert kinds(plan(slots(3), cr=cr)) == ["Deployment", "Service", "PodMonitor"]
    assert kinds(plan(slots(3), cr=cr, knowledge={POD_MONITORS: NOT_SERVED})) == ["Deployment", "Service"]


@pytest.mark.parametrize(("monitoring", "ports"), [({}, [[11211], [9150]]), (None, [[11211]])])
def test_network_policy_opens_the_port_of_the_metrics_only_with_metrics(
    monitoring: Any, ports: list[list[int]]
) -> None:
    found = plan(slots(3), cr=memcachedproxy(networkPolicy={}, monitoring=monitoring))
    (policy,) = [child for child in found.children or () if child["kind"] == "NetworkPolicy"]
    assert [[port["port"] for port in rule["ports"]] for rule in policy["spec"]["ingress"]] == ports


def test_listeners_with_tls() -> None:
    """The agent's one is no proxy: a proxy closes the connection after `refresh_certs`."""
    found = deployment(plan(slots(3), cr=memcachedproxy(port=11300, tls={"secretName": "a", "minVersion": "1.3"})))
    proxy, agent = found["spec"]["template"]["spec"]["containers"]
    command = proxy["command"]
    assert command[command.index("-l") + 1] == "*:11300,notls:proto[ascii]:127.0.0.1:11210"
    assert command[command.index("-l") + 2] == "-Z"
    assert "ssl_min_version=3" in command[-1]
    assert agent["command"][1:] == [
        "--memcached=127.0.0.1:11210",
        "--tls-directory=/etc/memcached/tls",
        "--tls-port=11300",
    ]
    monitored = deployment(plan(slots(3), cr=memcachedproxy(port=11300, monitoring={})))
    assert monitored["spec"]["template"]["spec"]["containers"][1]["command"][1:] == ["--memcached=127.0.0.1:11300"]


def limited(memory: str, **spec: Any) -> Object:
    """A spec with a memory limit."""
    return {**spec, "resources": {"limits": {"memory": memory}}}


SIZES: dict[str, tuple[Object, int, str | None, tuple[str, int, int, int]]] = {
    "default": ({}, 3, None, ("149Mi", 4136, 8096, 64)),
    "many slots": ({}, 505, None, ("149Mi", 5140, 8096, 64)),
    "few connections": ({"threads": 1, "maxConnections": 15}, 1, None, ("107Mi", 43, 2015, 64)),
    "many threads": ({"threads": 64}, 3, None, ("1329Mi", 4756, 132096, 512)),
    "TLS": ({"maxConnections": 1024, "tls": {"secretName": "a"}}, 3, None, ("211Mi", 1064, 5024, 64)),
    "large items": ({}, 3, "32Mi", ("389Mi", 4136, 8096, 256)),
    "small items": ({}, 3, "512Ki", ("149Mi", 4136, 8096, 64)),
    "large items and many threads": ({"threads": 16}, 3, "32Mi", ("2769Mi", 4276, 36096, 2048)),
    "a higher limit": (limited("1Gi"), 3, "1Mi", ("1Gi", 4136, 8096, 764)),
    "a lower limit": (limited("100Mi"), 3, "1Mi", ("100Mi", 4136, 8096, 25)),
    "the lowest limit": (limited("64Mi"), 3, "32Mi", ("64Mi", 4136, 8096, 4)),
    "a lower limit of a stored object": (limited("16Mi"), 3, None, ("16Mi", 4136, 8096, 4)),
    "a limit that no node has": (limited("1Ei"), 3, None, ("1Ei", 4136, 8096, 2**20)),
}
"""Spec, slots and `maxItemSize`; the memory limit, `-c`, requests in flight, and values in flight in MiB."""


@pytest.mark.parametrize(("spec", "count", "item", "expected"), SIZES.values(), ids=SIZES.keys())
def test_limits_follow_from_threads_connections_slots_and_items(
    spec: Object, count: int, item: str | None, expected: tuple[str, int, int, int]
) -> None:
    cache = slots(count, spec={"cache": {"maxItemSize": item}})
    template = deployment(plan(cache, cr=announced(memcachedproxy(**spec), count)))["spec"]["template"]
    proxy, text = template["spec"]["containers"][0], str(template["metadata"]["annotations"])
    memory, descriptors, requests, buffers = expected
    assert proxy["resources"]["limits"] == {"memory": memory}
    if "resources" not in spec:
        assert proxy["resources"]["requests"] == {"cpu": "100m", "memory": memory}
    assert proxy["command"][proxy["command"].index("-c") + 1] == str(descriptors)
    assert f"active_req_limit = {requests}," in text
    assert [int(each) // 1024 for each in re.findall(r"buffer_memory_limit = (\d+),", text)] == [buffers]


def test_deleted_and_created_again() -> None:
    found = plan(slots(4, ready=1, uid="new"), live(), announced(CR, 4))
    assert ring(found) == "cache/new/4"
    assert found.problems == ()


def test_scale_out_waits_for_the_new_slots() -> None:
    found = plan(slots(5, ready=4), live())
    assert ring(found) == "cache/cr/3"
    (problem,) = found.problems
    assert problem.reason == "RollingOut"
    assert problem.message == (
        "The proxies use 3 of 5 slots until all pods of Memcached cache are ready; see its conditions"
    )
    assert plan(slots(4, generation=2), live()).problems != ()


def reporting(servers: int) -> Object:
    """A proxy whose status has this number of slots."""
    return {**CR, "status": {"caches": [{"name": "cache", "servers": servers}]}}


def test_scale_out_of_ready_slots() -> None:
    found = plan(slots(4), live(), reporting(4))
    assert (ring(found), found.problems, found.requeue_after) == ("cache/cr/4", (), None)


@pytest.mark.parametrize("cr", [CR, reporting(3)], ids=["no status", "another number"])
def test_scale_out_is_reported_before_pods_use_the_slots(cr: Object) -> None:
    """So the Memcached keeps them, even if its size is reduced at the same time."""
    found = plan(slots(4), live(), cr)
    assert (ring(found), found.requeue_after) == ("cache/cr/3", 1.0)
    assert [each.message for each in found.problems] == ["The proxies use 3 slots of Memcached cache, and 4 next"]
    observed = snapshot_of(cr, {key_of(DEPLOYMENTS, live()): live()}, referenced={KEY: reads(slots(4))})
    assert KIND.status(observed, Outcome(found.problems), NOW).status["caches"] == [{"name": "cache", "servers": 4}]


def test_scale_in_is_immediate() -> None:
    found = plan(slots(2, ready=0), live())
    assert (ring(found), found.problems) == ("cache/cr/2", ())


def test_slot_that_is_not_ready_changes_nothing() -> None:
    assert deployment(plan(slots(3, ready=1), live())) == live()


def test_routes_follow_the_published_port() -> None:
    cache = slots(3)
    servers = [address.replace("11211", "11300") for address in cache["status"]["servers"]]
    found = deployment(plan({**cache, "status": {**cache["status"], "servers": servers}}, live()))
    assert 'port = "11300"' in str(found["spec"]["template"]["metadata"]["annotations"])


def test_another_cache_is_used_at_once() -> None:
    other = {**slots(2), "metadata": {**slots(2)["metadata"], "uid": "other"}}
    assert ring(plan(other, live())) == "cache/other/2"


def test_only_routes_ring_and_open_files_differ_between_rings() -> None:
    first, second = live(3)["spec"]["template"], live(4)["spec"]["template"]
    (one,), (other,) = ([pod["spec"].pop("containers")[0]] for pod in (first, second))
    words = zip(one.pop("command"), other.pop("command"), strict=True)
    assert [(left, right) for left, right in words if left != right] == [("4136", "4138")]
    assert (first["spec"], one) == (second["spec"], other)
    assert first["metadata"]["labels"] == second["metadata"]["labels"]


def test_invalid_spec_changes_nothing() -> None:
    found = plan(slots(3), live(), memcachedproxy(threads=65))
    assert (found.children, [each.reason for each in found.problems]) == (None, ["InvalidSpec"])


def test_pinned_image_stays() -> None:
    first = deployment(plan(slots(3)))
    newer = controller(Images("docker.io/library/memcached:1.6.99"))
    found = newer.plan(snapshot_of(CR, {key_of(DEPLOYMENTS, first): first}, referenced={KEY: reads(slots(3))}), NOW)
    assert deployment(found) == first


def test_clients_reach_the_ports_of_existing_pods() -> None:
    cr = memcachedproxy(port=11300, networkPolicy={})
    pod = {
        "metadata": {"name": "front-1", "namespace": "test"},
        "spec": {"containers": [{"name": "proxy", "ports": [{"name": "memcached", "containerPort": 11211}]}]},
        "status": {"phase": "Running"},
    }
    found = plan(slots(3), cr=cr, pods=(pod,))
    (policy,) = [child for child in found.children or () if child["kind"] == "NetworkPolicy"]
    assert [port["port"] for port in policy["spec"]["ingress"][0]["ports"]] == [11300, 11211]


def test_service_has_the_port_of_the_spec_and_a_target_by_name() -> None:
    (service,) = list(plan(None, cr=memcachedproxy(port=11300)).children or ())
    assert KIND.key_of(service) == Key(SERVICES, "test", "front")
    assert service["spec"]["ports"] == [
        {"name": "memcached", "port": 11300, "protocol": "TCP", "targetPort": "memcached"}
    ]


ROLLOUTS: dict[str, tuple[Object, Object]] = {
    "default": ({}, {"maxSurge": "100%", "maxUnavailable": 0}),
    "a surge": ({"maxSurge": 1}, {"maxSurge": 1, "maxUnavailable": 0}),
    "no surge": ({"maxSurge": "0%"}, {"maxSurge": "0%", "maxUnavailable": 1}),
    "both": ({"maxSurge": 0, "maxUnavailable": "50%"}, {"maxSurge": 0, "maxUnavailable": "50%"}),
}


@pytest.mark.parametrize(("rollout", "expected"), ROLLOUTS.values(), ids=ROLLOUTS.keys())
def test_strategy(rollout: Object, expected: Object) -> None:
    found = deployment(plan(slots(3), cr=memcachedproxy(rollout=rollout)))
    assert found["spec"]["strategy"] == {"type": "RollingUpdate", "rollingUpdate": expected}


def test_budget_of_another_user_is_a_notice() -> None:
    found = plan(
        slots(3),
        cr=memcachedproxy(podDisruptionBudget={}),
        other_budgets=OtherBudgets(LISTED, (Budget("theirs", Selector({})),)),
    )
    assert kinds(found) == ["Deployment", "Service"]
    assert "PodDisruptionBudget theirs selects the same pods" in found.notices[0]
