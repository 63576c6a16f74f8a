"""A field that is declared to replace the pods of a proxy does, and no other field does."""

from typing import Any

import pytest

from memcached_api.effects import Effect
from memcached_api.images import Images
from memcached_api.memcachedproxy.resolved import changed_fields
from memcached_api.memcachedproxy.types import MEMCACHEDPROXY, decode_spec
from memcached_operator.kube.resource import Object
from memcached_operator.memcachedproxy.desired.deployment import Servers, deployment
from memcached_operator.memcachedproxy.references import Slots
from memcached_operator.parts.ring import Ring
from unit.builders import memcachedproxy

Spec = dict[str, Any]
PEERS: list[Spec] = [{"podSelector": {}}]
BASE: Spec = {
    "image": "memcached:1.6.45",
    "monitoring": {"podMonitor": {}},
    "tls": {"secretName": "a", "clientAuth": "Require"},
}
WITHOUT_TLS: Spec = {"image": BASE["image"], "monitoring": {}}
"""A spec whose pods have an agent only for the metrics."""
PODS: Spec = {
    "nodeSelector": {"a": "b"},
    "tolerations": [{"key": "a"}],
    "affinity": {"podAffinity": {}},
    "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}],
    "priorityClassName": "high",
    "runtimeClassName": "gvisor",
    "serviceAccountName": "own",
    "terminationGracePeriodSeconds": 60,
    "securityContext": {},
}
VALUES: dict[str, Any] = {
    "memcachedRef.name": "other",
    "size": 5,
    "port": 12000,
    "image": "memcached:1.6.46",
    "imagePullPolicy": "Always",
    "imagePullSecrets": [{"name": "a"}],
    "resources": {"requests": {"cpu": "1"}},
    "threads": 3,
    "maxConnections": 100,
    "timeouts.connect": "1s",
    "timeouts.read": "1s",
    "podTemplate.metadata.labels": {"a": "b"},
    "podTemplate.metadata.annotations": {"a": "b"},
    **{f"podTemplate.spec.{name}": value for name, value in PODS.items()},
    "podDisruptionBudget.enabled": False,
    "podDisruptionBudget.maxUnavailable": 2,
    "rollout.maxUnavailable": 2,
    "rollout.maxSurge": 2,
    "rollout.minReadySeconds": 10,
    "rollout.paused": True,
    "rollout.restartedAt": "2026-11-22T10:00:00Z",
    "networkPolicy.from": PEERS,
    "networkPolicy.metricsFrom": PEERS,
    "service.annotations": {"a": "b"},
    "service.labels": {"a": "b"},
    "service.trafficDistribution": "PreferClose",
    "monitoring.enabled": False,
    "monitoring.podMonitor.enabled": False,
    "monitoring.podMonitor.interval": "1m",
    "monitoring.podMonitor.labels": {"a": "b"},
    "agent.image": "agent:2",
    "agent.resources": {"limits": {"memory": "64Mi"}},
    "tls.secretName": "b",
    "tls.clientAuth": "Request",
    "tls.clientCASecretName": "b",
    "tls.minVersion": "1.3",
    "inheritedMetadata.labels": {"a": "b"},
    "inheritedMetadata.annotations": {"a": "b"},
}
"""Another value of each field than in BASE."""


def template(spec: Spec) -> Object:
    """The pod template of the Deployment."""
    cr = memcachedproxy(**spec)
    decoded = decode_spec(cr)
    name = decoded.memcached_ref.name
    image, agent = decoded.image or "", (decoded.agent and decoded.agent.image) or "agent:1"
    servers = Servers(Slots(name, "domain", 11211), 3)
    return deployment(cr, decoded, Images(image, agent), servers, Ring(name, "uid", 3))["spec"]["template"]


def with_field(spec: Spec, path: str, value: Any) -> Spec:
    """The spec with another value of a field."""
    name, _, rest = path.partition(".")
    return {**spec, name: with_field(spec.get(name, {}), rest, value) if rest else value}


def changed(new: Spec, old: Spec) -> list[str]:
    """The changed fields that replace the pods."""
    return changed_fields(decode_spec(memcachedproxy(**new)), decode_spec(memcachedproxy(**old)))


@pytest.mark.parametrize("path", [path.removeprefix("spec.") for path in MEMCACHEDPROXY.fields])
def test_change_of_one_field_changes_the_template_if_it_is_declared(path: str) -> None:
    old = WITHOUT_TLS if path == "monitoring.enabled" else BASE
    new = with_field(old, path, VALUES[path])
    replaces = MEMCACHEDPROXY.fields[f"spec.{path}"].effect is not Effect.NOTHING
    assert MEMCACHEDPROXY.validate(memcachedproxy(**new)) == []
    assert changed(new, old) == changed(old, new) == ([f"spec.{path}"] if replaces else [])
    assert (template(new) != template(old)) == replaces


DEFAULTS: dict[str, Any] = {
    "threads": 2,
    "maxConnections": 4096,
    "timeouts.connect": "500ms",
    "timeouts.read": "500ms",
    "podTemplate.spec.serviceAccountName": "default",
    "podTemplate.spec.terminationGracePeriodSeconds": 30,
    "podTemplate.spec.securityContext": {"runAsUser": 1001, "runAsGroup": 1001},
    "monitoring.enabled": True,
    "agent.resources": {},
    "tls.minVersion": "1.2",
}


@pytest.mark.parametrize(("path", "default"), DEFAULTS.items(), ids=DEFAULTS.keys())
def test_default_is_no_change(path: str, default: Any) -> None:
    new = with_field(BASE, path, default)
    assert changed(new, BASE) == changed(BASE, new) == []
    assert template(new) == template(BASE)


def test_agent_that_does_not_run_replaces_no_pods() -> None:
    alone: Spec = {"image": BASE["image"]}
    assert changed(with_field(alone, "agent.image", "agent:2"), alone) == []


def test_metrics_of_an_agent_that_tls_needs_replace_no_pods() -> None:
    new = with_field(BASE, "monitoring.enabled", False)
    assert changed(new, BASE) == changed(BASE, new) == []
    assert template(new) == template(BASE)
