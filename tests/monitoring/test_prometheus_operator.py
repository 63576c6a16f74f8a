"""The real prometheus-operator makes our objects configuration, and Prometheus runs this configuration."""

import gzip
import json
import shutil
import subprocess
from base64 import b64decode
from collections.abc import Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Final
from urllib.request import urlopen

import pytest
import yaml

import goldens
from alerts import files
from cluster.public.programs import GO_ENV, PROMETHEUS_OPERATOR_FAMILY, directory, ensure_built, ensure_go
from cluster.shell import run
from integration.control_plane import ControlPlane, control_plane, until
from memcached_operator.kube.client import APPLY_PATCH, ApiError
from memcached_operator.kube.resource import CONFIG_MAPS, EVENTS, POD_MONITORS, PROMETHEUS_RULES, SECRETS, Key, Object
from memcached_operator.memcached.alerts.caches import GROUP
from support import programs
from support.kube import eventually
from support.ports import free_port
from support.prometheus import Prometheus, program, server
from support.waiting import READY, REQUEST
from unit.agent import processes
from unit.config.rendered import ROOT, kubectl

MODULE: Final = "github.com/prometheus-operator/prometheus-operator"
CONFIGURATION: Final = "prometheus.yaml.gz"


class _Loader(yaml.SafeLoader):
    """Reads `=` as text. In YAML 1.1 it has a type of its own, and PyYAML has no value for it."""


_Loader.add_constructor("tag:yaml.org,2002:value", yaml.SafeLoader.construct_scalar)


def crds() -> list[Object]:
    """Its CRDs, which are in its Go module."""
    words = [ensure_go(), "mod", "download", "-json", MODULE]
    folder = Path(json.loads(run(words, env=GO_ENV, cwd=PROMETHEUS_OPERATOR_FAMILY.module))["Dir"])
    paths = sorted((folder / "example/prometheus-operator-crd").glob("*.yaml"))
    return [yaml.load(path.read_text(), _Loader) for path in paths]  # noqa: S506 - derived from SafeLoader


@contextmanager
def prometheus_operator(kubectl: str, kubeconfig: Path) -> Generator[None]:
    """Run it during the block. It knows no kubeconfig, so `kubectl proxy` is between it and the API server."""
    ensure_built(PROMETHEUS_OPERATOR_FAMILY, ["operator"])
    api = free_port()
    proxy = [kubectl, f"--kubeconfig={kubeconfig}", "proxy", f"--port={api}"]
    words = [
        str(directory(PROMETHEUS_OPERATOR_FAMILY) / "operator"),
        f"--apiserver=http://127.0.0.1:{api}",
        f"--web.listen-address=127.0.0.1:{free_port()}",
        "--kubelet-endpoints=false",
    ]
    with ExitStack() as stack:
        stack.enter_context(_process(proxy))
        # The operator ends if nothing listens yet.
        eventually(lambda: _is_ready(api), READY, "the proxy answers")
        stack.enter_context(_process(words))
        yield


@contextmanager
def _process(words: list[str]) -> Generator[None]:
    """Run a program during the block. Its log is in the error if the program has ended before."""
    with TemporaryFile() as log, subprocess.Popen(words, stdout=log, stderr=log) as process:
        try:
            yield
        finally:
            code = process.poll()
            process.kill()
            log.seek(0)
            assert code is None, f"{words[0]} has ended with {code}: {log.read()[-2000:].decode()}"


def _is_ready(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/readyz", timeout=REQUEST) as response:
            return response.status == HTTPStatus.OK
    except OSError:
        return False


def prometheus_object(namespace: str) -> Object:
    """A Prometheus that selects every object of every namespace, for the version of the program on this machine."""
    words = [program(), "--version"]
    version = programs.output(words).split()[2].partition("+")[0]
    objects = ("podMonitor", "serviceMonitor", "rule")
    selectors: Object = {f"{each}{scope}Selector": {} for each in objects for scope in ("", "Namespace")}
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "Prometheus",
        "metadata": {"name": "test", "namespace": namespace},
        "spec": {"version": f"v{version}", "scrapeInterval": "1s", "evaluationInterval": "1s", **selectors},
    }


def configuration(secret: Object) -> Object:
    """The configuration in the Secret that prometheus-operator writes for a Prometheus, as its sidecar completes it."""
    text = gzip.decompress(b64decode(secret["data"][CONFIGURATION])).decode()
    return yaml.safe_load(text.replace("$(SHARD)", "0"))


def job(content: Object, name: str) -> Object | None:
    """The job of this name; None if the configuration has none."""
    return next((each for each in content["scrape_configs"] if each["job_name"] == name), None)


@contextmanager
def running(content: Object, found: Object, labels: dict[str, str], address: str, rules: str) -> Generator[Prometheus]:
    """Run Prometheus with the rules and one job of a configuration.

    Debian builds it without the discovery of pods: the job gets one target with the labels that this would find.
    """
    names = ("kubernetes_sd_configs", "authorization", "bearer_token_file")
    static = {name: each for name, each in found.items() if name not in names}
    target = {"targets": [address], "labels": labels}
    more = {name: each for name, each in content.items() if name == "global"}
    with server([{**static, "static_configs": [target]}], more, {"rules.yml": rules}) as started:
        yield started


def groups(config_maps: Iterable[Object]) -> list[Object]:
    """The groups of rules in the ConfigMaps that prometheus-operator writes."""
    found: list[Object] = []
    for each in config_maps:
        for text in each.get("data", {}).values():
            content: Object = yaml.safe_load(text) or {}
            found += content.get("groups", [])
    return found


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
