import re
from typing import Any

import pytest

from memcached_api.annotations import PINNED_AGENT_ANNOTATION
from memcached_api.images import Images
from memcached_api.shared.monitoring import METRICS_PORT
from memcached_operator.kube.resource import DEPLOYMENTS, POD_MONITORS, PROMETHEUS_RULES, Object, Resource, key_of
from memcached_operator.memcached.controller import memcached
from memcached_operator.memcached.images import image_counts
from memcached_operator.memcached.plan import plan_with
from memcached_operator.world.knowledge import NOT_SERVED
from unit.builders import NOW, owned, snapshot_of
from unit.builders import memcached as cr_of

OLD, NEW, OWN = "example.com/memcached:1", "example.com/memcached:2", "example.org/own:3"


def children(default: str, cr: Object, live: Object | None = None) -> dict[str, Object]:
    """The desired children, by kind."""
    snapshot = snapshot_of(cr, {} if live is None else {key_of(DEPLOYMENTS, live): live})
    return {child["kind"]: child for child in plan_with(Images(default))(snapshot, NOW).children or ()}


def message_of(cr: Object) -> str:
    """The message about an invalid object, whose children stay as they are."""
    plan = plan_with(Images(OLD))(snapshot_of(cr), NOW)
    (problem,) = plan.problems
    assert (plan.children, problem.reason) == (None, "InvalidSpec")
    return problem.message


def image_of(deployment: Object) -> str:
    """The image of a Deployment."""
    return deployment["spec"]["template"]["spec"]["containers"][0]["image"]


def stored(deployment: Object) -> Object:
    """A desired Deployment as the API server stores it."""
    return {**owned(), **deployment, "metadata": {**owned()["metadata"], **deployment["metadata"]}}


def test_children() -> None:
    placed: dict[str, Any] = {"size": 2, "podDisruptionBudget": {}, "networkPolicy": {}}
    placed |= {"monitoring": {"podMonitor": {}, "rules": {}}}
    beside = ["PodDisruptionBudget", "NetworkPolicy", "PodMonitor", "PrometheusRule"]
    assert list(children(OLD, cr_of())) == ["Deployment", "Service"]
    assert list(children(OLD, cr_of(**placed))) == ["Deployment", "Service", *beside]
    stable = children(OLD, cr_of(**placed, identity="Stable"))
    assert list(stable) == ["StatefulSet", "Service", "ConfigMap", *beside]
    controller = memcached(Images(OLD))
    assert [resource.kind for resource in controller.owns] == ["Deployment", *stable]
    assert [workload.resource.kind for workload in controller.workloads] == ["Deployment", "StatefulSet"]


METADATA: dict[str, dict[str, str]] = {"labels": {"team": "a", "tier": "b"}, "annotations": {"team": "c", "tier": "d"}}
ALL: dict[str, Any] = {
    "size": 2,
    "podDisruptionBudget": {},
    "networkPolicy": {},
    "monitoring": {"podMonitor": {"labels": {"team": "monitor"}}, "rules": {"labels": {"team": "rules"}}},
    "service": {"labels": {"team": "service"}, "annotations": {"team": "service"}},
}


@pytest.mark.parametrize("identity", ["Pooled", "Stable"])
def test_every_child_and_no_pod_inherits_metadata_besides_its_own(identity: str) -> None:
    before = children(OLD, cr_of(**ALL, identity=identity))
    after = children(OLD, cr_of(**ALL, identity=identity, inheritedMetadata=METADATA))
    for kind, child in after.items():
        found, own = child.pop("metadata"), before[kind].pop("metadata")
        assert found["labels"] == METADATA["labels"] | own["labels"]
        assert found["annotations"] == METADATA["annotations"] | own.get("annotations", {})
    assert after == before
    assert len(after) == (7 if identity == "Stable" else 6)


def test_new_default_does_not_change_a_pinned_image() -> None:
    before = children(OLD, cr_of())["Deployment"]
    assert children(NEW, cr_of(), stored(before))["Deployment"] == before


def test_image_in_the_spec_removes_the_pin() -> None:
    before = children(OLD, cr_of())["Deployment"]
    after = children(NEW, cr_of(image=OWN), stored(before))["Deployment"]
    assert (image_of(after), "annotations" in after["metadata"]) == (OWN, False)


def test_removing_the_image_from_the_spec_uses_the_current_default() -> None:
    before = children(OLD, cr_of(image=OWN))["Deployment"]
    assert image_of(children(NEW, cr_of(), stored(before))["Deployment"]) == NEW


INVALID: dict[str, tuple[Object, str]] = {
    "too small": (cr_of(size=0), "spec.size: Invalid value: 0: must be at least 1"),
    "wrong type": (cr_of(size="three"), 'spec.size: Invalid value: "three": must be an integer'),
    "name not valid for a Service": (cr_of("1st"), 'metadata.name: Invalid value: "1st": must be a DNS-1035 label'),
    "memory limit below that of the first release": (
        cr_of(cache={"memory": "1Gi"}, resources={"limits": {"memory": "1150Mi"}}),
        'spec.resources.limits[memory]: Invalid value: "1150Mi": must be at least 1259Mi',
    ),
    "memory limit without room for a cache": (
        cr_of(resources={"limits": {"memory": "50Mi"}}),
        'spec.resources.limits[memory]: Invalid value: "50Mi": must be at least',
    ),
}


@pytest.mark.parametrize(("cr", "message"), INVALID.values(), ids=INVALID.keys())
def test_field_error_of_an_invalid_object_is_a_problem(cr: Object, message: str) -> None:
    assert message in message_of(cr)


def test_object_that_violates_a_newer_rule_is_reconciled_and_reported() -> None:
    plan = plan_with(Images(OLD))(snapshot_of(cr_of(networkPolicy={"metricsFrom": [{"podSelector": {}}]})), NOW)
    assert plan.children == plan_with(Images(OLD))(snapshot_of(cr_of(networkPolicy={})), NOW).children
    (notice,) = plan.notices
    assert "newer rule: spec.networkPolicy.metricsFrom: " in notice
    assert "must not be set without spec.monitoring" in notice
    assert plan.problems == ()


def test_all_field_errors_are_reported() -> None:
    assert re.search(r"spec\.size.*spec\.containerPort", message_of(cr_of(size=0, containerPort=80)))


def test_object_without_a_spec_has_all_defaults() -> None:
    minimal = cr_of()
    del minimal["spec"]
    assert children(OLD, minimal) == children(OLD, cr_of())


OUTDATED: dict[str, tuple[list[Any], int]] = {
    "none": ([], 0),
    "without an image": ([cr_of()], 0),
    "two of three": ([cr_of(image=OLD), cr_of(image=NEW), cr_of(image=OWN)], 2),
}


@pytest.mark.parametrize(("objects", "count"), OUTDATED.values(), ids=OUTDATED.keys())
def test_outdated(objects: list[Object], count: int) -> None:
    assert sum(image_counts(each, "", Images(NEW)).outdated for each in objects) == count


AGENTS: dict[str, Any] = {"monitoring": {}, "image": OWN}


def agent_of(deployment: Object) -> str:
    _, agent = deployment["spec"]["template"]["spec"]["containers"]
    return agent["image"]


def planned(cr: Object, agent: str, live: Object | None = None) -> Object:
    """The Deployment with this default image of the agent."""
    known = {} if live is None else {key_of(DEPLOYMENTS, live): live}
    plan = plan_with(Images(OWN, agent))(snapshot_of(cr, known), NOW)
    return next(child for child in plan.children or () if child["kind"] == "Deployment")


def test_default_image_of_the_agent_is_pinned() -> None:
    before = planned(cr_of(**AGENTS), OLD)
    assert agent_of(before) == OLD
    assert before["metadata"]["annotations"] == {PINNED_AGENT_ANNOTATION: OLD}
    assert planned(cr_of(**AGENTS), NEW, stored(before)) == before


@pytest.mark.parametrize(
    ("missing", "kind"),
    [(POD_MONITORS, "PrometheusRule"), (PROMETHEUS_RULES, "PodMonitor")],
    ids=lambda each: str(each),
)
def test_objects_for_the_prometheus_operator_are_left_out_if_their_api_is_not_served(
    missing: Resource, kind: str
) -> None:
    cr = cr_of(monitoring={"podMonitor": {}, "rules": {}})
    found = plan_with(Images())(snapshot_of(cr, knowledge={missing: NOT_SERVED}), NOW).children or ()
    assert [child["kind"] for child in found] == ["Deployment", "Service", kind]


@pytest.mark.parametrize("switch", [{"enabled": False, "rules": {}}, {"rules": {"enabled": False}}, {"podMonitor": {}}])
def test_rules_are_optional(switch: dict[str, Any]) -> None:
    assert "PrometheusRule" not in children(OLD, cr_of(monitoring=switch))


def ingress(cr: Object, *pods: Object) -> list[Object]:
    """The rules of the NetworkPolicy."""
    children = plan_with(Images())(snapshot_of(cr, pods=pods), NOW).children or ()
    (policy,) = (child for child in children if child["kind"] == "NetworkPolicy")
    return policy["spec"]["ingress"]


def metrics_rules(cr: Object, *pods: Object) -> list[Object]:
    """The rules of the NetworkPolicy for the port of the metrics."""
    return [each for each in ingress(cr, *pods) if each["ports"][0]["port"] == METRICS_PORT]


@pytest.mark.parametrize(
    ("phase", "rollout", "opened"),
    [
        ("Running", {}, [11212, 11211]),
        ("Running", {"paused": True}, [11211]),
        ("Failed", {}, [11212]),
        ("Failed", {"paused": True}, [11212]),
    ],
)
def test_ports_of_existing_pods_stay_open(phase: str, opened: list[int], rollout: dict[str, Any]) -> None:
    """Clients keep their connections until a rollout has replaced the pods."""
    container = {"name": "memcached", "ports": [{"name": "memcached", "containerPort": 11211}]}
    pod = {"metadata": {"name": "a"}, "spec": {"containers": [container]}, "status": {"phase": phase}}
    cr = cr_of(tls={"secretName": "a", "port": 11212}, networkPolicy={}, rollout=rollout)
    (rule,) = ingress(cr, pod)
    assert [each["port"] for each in rule["ports"]] == opened


@pytest.mark.parametrize(("port", "rules"), [(11211, 1), (METRICS_PORT, 0)])
def test_port_of_the_metrics_is_not_opened_while_memcached_listens_on_it(port: int, rules: int) -> None:
    """Admission denies both at once, but pods of the previous port remain until a rollout has replaced them."""
    container = {"name": "memcached", "ports": [{"name": "memcached", "containerPort": port}]}
    cr = cr_of(monitoring={}, networkPolicy={"from": [{"podSelector": {}}]})
    assert len(metrics_rules(cr, {"metadata": {"name": "a"}, "spec": {"containers": [container]}})) == rules


def test_policy_opens_no_port_for_probes() -> None:
    """They come from the node of the pod, to which no policy applies."""
    rules = ingress(cr_of(monitoring={}, networkPolicy={}))
    assert {each["port"] for rule in rules for each in rule["ports"]} == {11211, METRICS_PORT}


def test_outdated_agents_are_counted_only_where_there_are_agents() -> None:
    old: dict[str, Any] = {"agent": {"image": OLD}}
    given: list[dict[str, Any]] = [
        old,
        {**old, "monitoring": {"enabled": False}},
        {**old, "monitoring": {}},
        {"monitoring": {}},
    ]
    assert sum(image_counts(cr_of(**each), "", Images(agent=NEW)).outdated_agents for each in given) == 1
