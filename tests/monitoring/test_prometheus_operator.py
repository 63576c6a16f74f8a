"""The real prometheus-operator makes our objects configuration, and Prometheus runs this configuration."""

import shutil
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any, Final

import pytest
import yaml

import goldens
from alerts import files
from integration.control_plane import ControlPlane, control_plane, until
from memcached_operator.kube.client import APPLY_PATCH, ApiError
from memcached_operator.kube.resource import CONFIG_MAPS, EVENTS, POD_MONITORS, PROMETHEUS_RULES, SECRETS, Key, Object
from memcached_operator.memcached.alerts.caches import GROUP
from support.ports import free_port
from support.prometheus_operator import (
    configuration,
    crds,
    groups,
    job,
    prometheus_object,
    prometheus_operator,
    running,
)
from support.waiting import READY
from unit.agent import processes
from unit.config.rendered import ROOT, kubectl

NAMESPACE: Final = "default"
CACHE: Final = "monitoring-rules"
JOB: Final = f"podMonitor/{NAMESPACE}/{CACHE}/0"
CREATED: Final = [
    each
    for each in goldens.objects(goldens.paths("memcached")[CACHE])
    if each["kind"] in (POD_MONITORS.kind, PROMETHEUS_RULES.kind)
]
"""The PodMonitor and the PrometheusRule that the controller creates for a cache."""
OF_OPERATOR: Final = [yaml.safe_load((ROOT / "config/prometheus/monitor.yaml").read_text()), files.prometheus_rule()]
META: Final = "__meta_kubernetes_"
LABELS: Final = {
    f"{META}namespace": NAMESPACE,
    f"{META}pod_name": f"{CACHE}-5d5f-abcde",
    f"{META}pod_phase": "Running",
    f"{META}pod_ready": "true",
    f"{META}pod_container_name": "agent",
    f"{META}pod_container_port_name": "metrics",
    **{
        f"{META}pod_{kind}_app_kubernetes_io_{name}": text
        for name, value in {"instance": CACHE, "name": "memcached", "managed_by": "memcached-operator"}.items()
        for kind, text in {"label": value, "labelpresent": "true"}.items()
    },
}
"""What Prometheus discovers of the port of the metrics of a pod."""


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """A control plane with the CRDs of prometheus-operator, with our objects, and with a Prometheus."""
    with control_plane("monitoring") as started:
        for crd in crds():
            apply(started, crd, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "memcached-operator-system"}}
        apply(started, namespace, "/api/v1/namespaces")
        until(lambda: is_stored(started, prometheus_object(NAMESPACE)), READY)
        for each in (*CREATED, *OF_OPERATOR):
            until(lambda each=each: is_stored(started, each), READY)
        program = shutil.which("kubectl") or kubectl()
        assert program
        with prometheus_operator(program, started.kubeconfig):
            yield started


def apply(plane: ControlPlane, obj: Object, path: str) -> Object:
    """Apply an object strictly: an unknown field is an error."""
    params = {"fieldManager": "test", "force": "true", "fieldValidation": "Strict"}
    name = f"{path}/{obj['metadata']['name']}"
    return plane.call(lambda client: client.request("PATCH", name, obj, APPLY_PATCH, params))


def is_stored(plane: ControlPlane, obj: Object) -> bool:
    """Apply an object of monitoring.coreos.com; False while its CRD is not served yet."""
    plural = {"Prometheus": "prometheuses"}.get(obj["kind"], f"{obj['kind'].lower()}s")
    path = f"/apis/{obj['apiVersion']}/namespaces/{obj['metadata']['namespace']}/{plural}"
    try:
        apply(plane, obj, path)
    except ApiError as error:
        if error.code != HTTPStatus.NOT_FOUND:
            raise
        return False
    return True


def written(plane: ControlPlane) -> Object:
    """The configuration that prometheus-operator has written so far; empty before."""
    secret = plane.get(Key(SECRETS, NAMESPACE, "prometheus-test"))
    return configuration(secret) if secret and secret.get("data") else {"scrape_configs": []}


def rules(plane: ControlPlane) -> list[Object]:
    """The groups of rules that it has written so far."""
    params = {"labelSelector": "prometheus-name=test"}
    found = plane.call(lambda client: client.request("GET", CONFIG_MAPS.path(NAMESPACE), params=params))
    return groups(found["items"])


def test_objects_are_stored_as_the_controller_writes_them(plane: ControlPlane) -> None:
    """Fields that the API server adds would differ from the desired ones at each comparison."""
    for each, resource in zip(CREATED, (POD_MONITORS, PROMETHEUS_RULES), strict=True):
        assert plane.must_get(Key(resource, NAMESPACE, CACHE))["spec"] == each["spec"]


def test_monitors_and_rules_become_configuration_that_prometheus_runs(plane: ControlPlane) -> None:
    until(lambda: job(written(plane), JOB), READY)
    until(lambda: {group["name"] for group in rules(plane)} >= {GROUP, "memcached-operator"}, READY)
    content = written(plane)
    assert job(content, "serviceMonitor/memcached-operator-system/memcached-operator-metrics-monitor/0")
    found = job(content, JOB)
    assert found
    text = yaml.safe_dump({"groups": rules(plane)})
    with processes.running(free_port()) as agent:  # without memcached
        address = f"127.0.0.1:{agent.port}"
        with running(content, found, LABELS, address, text) as prometheus:
            selector = f'{{namespace="{NAMESPACE}",cache="{CACHE}",container="agent"}}'
            until(lambda: prometheus.query(f"memcached_up{selector} == 0"), READY)
            until(lambda: prometheus.query('ALERTS{alertname="MemcachedCacheDown",alertstate="pending"}'), READY)
            (alert,) = prometheus.query('ALERTS{alertname="MemcachedCacheDown"}')
            assert {name: alert["metric"][name] for name in ("namespace", "cache", "severity")} == {
                "namespace": NAMESPACE,
                "cache": CACHE,
                "severity": "critical",
            }
            assert prometheus.query(f'memcached_cache_own_rules{{namespace="{NAMESPACE}",cache="{CACHE}"}}')


def test_invalid_rule_is_rejected(plane: ControlPlane) -> None:
    invalid: dict[str, Any] = {"groups": [{"name": "invalid", "rules": [{"alert": "A", "expr": "sum by ("}]}]}
    valid: dict[str, Any] = {"groups": [{"name": "later", "rules": [{"record": "a", "expr": "vector(1)"}]}]}
    for name, spec in {"invalid": invalid, "later": valid}.items():
        obj = {**files.prometheus_rule(), "metadata": {"name": name, "namespace": NAMESPACE}, "spec": spec}
        assert is_stored(plane, obj)
    until(lambda: "later" in {group["name"] for group in rules(plane)}, READY)
    assert "invalid" not in {group["name"] for group in rules(plane)}
    path = EVENTS.path(NAMESPACE)

    def reasons() -> set[str]:
        events = plane.call(lambda client: client.request("GET", path))["items"]
        return {each["reason"] for each in events if each["involvedObject"]["name"] == "invalid"}

    until(lambda: reasons() == {"InvalidConfiguration"}, READY)
