"""The parts that kinds share, as a kind that is not Memcached uses them."""

from typing import Annotated, Any, Final

import msgspec
import pytest

from crds.schema import struct_schema
from memcached_api.annotations import PINNED_AGENT_ANNOTATION, PINNED_IMAGE_ANNOTATION
from memcached_api.effects import REPLACES
from memcached_api.images import Images
from memcached_api.kind import Kind
from memcached_api.shared.agent import Agent
from memcached_api.shared.budgets import budget_of
from memcached_api.shared.monitoring import Monitoring
from memcached_api.shared.pod_template import NetworkPolicy, PodDisruptionBudget, PodTemplate, Rollout, Service
from memcached_api.shared.rules.images import IMAGE_RULES
from memcached_api.shared.rules.monitoring import AGENT_IMAGE, AGENT_RESOURCES, INTERVAL, METRICS_CLIENTS
from memcached_api.shared.rules.placing import PLACING_RULES
from memcached_api.shared.rules.tls import CLIENT_CA, SECRETS, agent_ports_rule, loopback_port_rule
from memcached_api.shared.tls import LOOPBACK_PORT, TLS
from memcached_api.validation.rules import blocking
from memcached_operator.kube.resource import Object
from memcached_operator.parts import agent, tls
from memcached_operator.parts.images import chosen
from memcached_operator.parts.network_policy import network_policy
from memcached_operator.parts.pod_disruption_budget import pod_disruption_budget, wants_budget
from memcached_operator.parts.pod_monitor import https_fields, pod_monitor, wanted_pod_monitor
from memcached_operator.parts.pods import restricted_pod, with_pod_metadata
from memcached_operator.parts.workloads import children

NAME, COMPONENT = "front", "proxy"
CR: Final[Object] = {"metadata": {"name": "web", "namespace": "test"}}
LABELS: Final = children.selector(CR, NAME)
DEFAULTS: Final = Images("example.com/memcached:2", "example.com/agent:2")


class FrontSpec(msgspec.Struct, frozen=True, rename="camel"):
    """A spec with every shared part. The port has another name than that of a Memcached."""

    port: Annotated[int, REPLACES] = 11211
    """Port."""

    image: Annotated[str, REPLACES] | None = None
    """Image."""

    pod_template: PodTemplate | None = None
    """Pods."""

    pod_disruption_budget: PodDisruptionBudget | None = None
    """Budget."""

    rollout: Rollout | None = None
    """Rollouts."""

    network_policy: NetworkPolicy | None = None
    """Clients."""

    service: Service | None = None
    """Service."""

    monitoring: Monitoring | None = None
    """Metrics."""

    agent: Agent | None = None
    """Agent."""

    tls: TLS | None = None
    """TLS."""


FRONT: Final = Kind(
    group="test.example.com",
    versions=("v1",),
    name="Front",
    plural="fronts",
    short_names=(),
    description="Every shared part.",
    spec=FrontSpec,
    status=FrontSpec,
    rules=(
        *blocking(
            *IMAGE_RULES,
            *PLACING_RULES,
            *SECRETS,
            CLIENT_CA,
            INTERVAL,
            AGENT_IMAGE,
            *AGENT_RESOURCES,
            agent_ports_rule(
                "port", lambda spec: spec.get("monitoring") is not None, "!has(self.monitoring)", "metrics"
            ),
            loopback_port_rule("port"),
        ),
        METRICS_CLIENTS,
    ),
    columns=(),
)


INVALID: Final[dict[str, dict[str, Any]]] = {
    "spec.image": {"image": "not an image"},
    "spec.port": {"port": LOOPBACK_PORT, "tls": {"secretName": "front"}},
    "spec.podDisruptionBudget.maxUnavailable": {"podDisruptionBudget": {"maxUnavailable": "0%"}},
    "spec.rollout.maxSurge": {"rollout": {"maxSurge": 0, "maxUnavailable": 0}},
    "spec.tls.clientCASecretName": {"tls": {"secretName": "front", "clientCASecretName": "clients"}},
    "spec.monitoring.podMonitor.interval": {"monitoring": {"podMonitor": {"interval": "often"}}},
    "spec.networkPolicy.metricsFrom": {"networkPolicy": {"metricsFrom": [{"podSelector": {}}]}},
    "spec.service.labels[app.kubernetes.io/name]": {"service": {"labels": {"app.kubernetes.io/name": "other"}}},
}


@pytest.mark.parametrize("field", INVALID)
def test_rules_apply_to_another_kind(field: str) -> None:
    (error,) = FRONT.validate({"metadata": {"name": "web"}, "spec": INVALID[field]})
    assert error.field == field


def test_port_of_another_name_is_none_of_the_agent() -> None:
    (error,) = FRONT.validate({"metadata": {"name": "web"}, "spec": {"port": 9150, "monitoring": {}}})
    assert (error.field, "9150 or 9151 with metrics" in str(error)) == ("spec.port", True)


def test_parts_have_no_field_of_a_cache() -> None:
    schema = struct_schema(FrontSpec)["properties"]
    assert list(schema["tls"]["properties"]) == ["secretName", "clientAuth", "clientCASecretName", "minVersion"]
    assert list(schema["monitoring"]["properties"]) == ["enabled", "podMonitor"]
    assert list(schema["service"]["properties"]) == ["annotations", "labels"]
    assert "warmUp" not in schema["rollout"]["properties"]


def test_children_have_the_labels_of_the_kind() -> None:
    budget, monitoring = PodDisruptionBudget(max_unavailable="25%"), Monitoring()
    built = [
        pod_disruption_budget(CR, NAME, COMPONENT, budget),
        network_policy(CR, NAME, COMPONENT, [11211], NetworkPolicy(), metrics=True),
    ]
    assert wanted_pod_monitor(monitoring) is None
    monitor = wanted_pod_monitor(FRONT.decode({"spec": {"monitoring": {"podMonitor": {}}}}).monitoring)
    assert monitor is not None
    built.append(pod_monitor(CR, NAME, COMPONENT, monitor, https_fields(CR, "front-tls", "cluster.local")))
    selectors = [child["spec"].get("selector") or child["spec"]["podSelector"] for child in built]
    assert selectors == [{"matchLabels": LABELS}] * 3
    assert {child["metadata"]["labels"]["app.kubernetes.io/component"] for child in built} == {COMPONENT}
    assert built[2]["spec"]["podMetricsEndpoints"][0]["tlsConfig"]["serverName"] == "web.test.svc.cluster.local"
    assert (budget_of(budget, 5), wants_budget(budget, 1), wants_budget(budget, 2)) == (2, False, True)


def test_budget_protects_pods_that_are_not_ready_only_on_request() -> None:
    policies = [
        pod_disruption_budget(CR, NAME, COMPONENT, None, protects_unready=protects)["spec"][
            "unhealthyPodEvictionPolicy"
        ]
        for protects in (False, True)
    ]
    assert policies == ["AlwaysAllow", "IfHealthyBudget"]


def test_images_that_a_spec_does_not_name_are_pinned() -> None:
    live = {"metadata": {"annotations": {PINNED_IMAGE_ANNOTATION: "example.com/memcached:1"}}}
    choice = chosen(None, None, live, DEFAULTS, has_agent=True)
    assert choice.images == Images("example.com/memcached:1", "example.com/agent:2")
    assert set(choice.pins) == {PINNED_IMAGE_ANNOTATION, PINNED_AGENT_ANNOTATION}
    named = chosen("a:1", Agent(image="b:1"), live, DEFAULTS, has_agent=True)
    assert (named.images, named.pins) == (Images("a:1", "b:1"), {})
    assert chosen("a:1", None, None, DEFAULTS, has_agent=False).pins == {}


def test_pod_with_tls_and_agent() -> None:
    settings = TLS("front-tls", client_auth="Require", client_ca_secret_name="clients")
    container = {"name": "proxy", "command": ["memcached", *tls.tls_options(settings, 11211)]}
    options = [agent.address_option(tls.local_port(11211, settings)), *tls.agent_tls_options(11211)]
    sidecar = agent.agent("example.com/agent:2", options, None, [tls.mount(tls.TLS_VOLUME, tls.TLS_PATH)])
    pod = restricted_pod(None, LABELS, [container, sidecar], [])
    assert container["command"][:3] == ["memcached", "-l", f"*:11211,notls:127.0.0.1:{LOOPBACK_PORT}"]
    assert sidecar["command"][1] == f"--memcached=127.0.0.1:{LOOPBACK_PORT}"
    assert "readinessProbe" not in sidecar
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    workload = children.deployment(CR, NAME, COMPONENT, 2, {**pod, "volumes": [tls.tls_volume(settings)]})
    assert tls.certificate_secret(workload) == "front-tls"
    restarted = Rollout(restarted_at="2026-11-22T10:00:00Z")
    metadata = with_pod_metadata(workload, None, restarted, {"routes": "a"})["spec"]["template"]["metadata"]
    assert metadata["annotations"] == {"kubectl.kubernetes.io/restartedAt": restarted.restarted_at, "routes": "a"}
