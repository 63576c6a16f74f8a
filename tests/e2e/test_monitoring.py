"""Metrics of caches, with real pods, a real Prometheus, and faults of the agent and of memcached."""

import re
import signal
import socket
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from memcached_operator.kube import labels
from memcached_operator.kube.resource import POD_MONITORS
from support import kube
from support.agents import METRICS_PORT, healthz, restarts, value
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, memcached, pods_of, send_commands, wait_until_ready
from support.monitors import monitor_crd
from support.processes import frozen, send_signal
from support.prometheus import Prometheus, prometheus

DOCUMENT = (Path(__file__).parents[2] / "docs/monitoring.md").read_text()
QUERIES = dict(
    re.findall(r"^\| ([A-Z][^|]*) \| `([^`]+)` \|$", DOCUMENT.partition("Everyday queries")[2], re.MULTILINE)
)
AGENT, MEMCACHED = "agent", "memcached"
RECOVERY = 90.0
"""Seconds until the kubelet has noticed a fault, restarted a container, and its probes have succeeded."""


def monitored(namespace: str, name: str = "cache", **spec: Any) -> Object:
    """A small Memcached with metrics."""
    merged: dict[str, Any] = {"monitoring": {}, "resources": SMALL, **spec}
    return memcached(namespace, name, **merged)


@pytest.fixture
def pod(namespace: str) -> Generator[Object]:
    """The pod of a monitored Memcached, with one item, which no fault may cost; nor may memcached be restarted."""
    kube.apply(monitored(namespace, size=1, cache={"maxConnections": 40, "threads": 1}))
    wait_until_ready(namespace)
    (found,) = pods_of(namespace)
    address = found["status"]["podIP"]
    assert b"STORED" in send_commands(address, 11211, b"set key 0 0 5", b"value")
    with socket.create_connection((address, 11211), timeout=10) as client:
        yield found
        client.sendall(b"get key\r\n")
        assert b"VALUE key 0 5\r\nvalue\r\nEND\r\n" in client.recv(4096)
    assert b"value" in send_commands(address, 11211, b"get key")
    (after,) = pods_of(namespace)
    assert after["metadata"]["uid"] == found["metadata"]["uid"]
    assert restarts(after)[MEMCACHED] == 0


def wait_until_restarted(namespace: str, pod: Object) -> None:
    """Wait until the agent was restarted and the pod is ready again."""
    eventually(lambda: restarts(pod)[AGENT] > 0, RECOVERY, "the agent was restarted")
    wait_until_ready(namespace, timeout=RECOVERY)
    eventually(lambda: value(pod, "memcached_up") == 1, 30, "the agent reports memcached")


class TestFaults:
    def test_killed_agent_is_restarted(self, namespace: str, pod: Object) -> None:
        send_signal(pod, AGENT, signal.SIGKILL)
        wait_until_restarted(namespace, pod)

    def test_hanging_agent_is_restarted(self, namespace: str, pod: Object) -> None:
        send_signal(pod, AGENT, signal.SIGSTOP)
        wait_until_restarted(namespace, pod)

    def test_agent_out_of_memory_is_restarted(self, namespace: str, pod: Object) -> None:
        """The kernel kills the largest process. Shared memory counts, but belongs to none: that is the agent."""
        fill = ("dd", "if=/dev/zero", "of=/dev/shm/fill", "bs=1M", "count=60")
        kubectl("exec", pod["metadata"]["name"], "-n", namespace, "-c", AGENT, "--", *fill, check=False)
        wait_until_restarted(namespace, pod)
        (last,) = (
            each["lastState"]["terminated"]
            for each in must_get("pods", namespace, pod["metadata"]["name"])["status"]["containerStatuses"]
            if each["name"] == AGENT
        )
        assert last["exitCode"] == 137

    def test_hanging_memcached_is_reported(self, namespace: str, pod: Object) -> None:
        with frozen(pod, MEMCACHED):
            assert value(pod, "memcached_up") == 0
            assert value(pod, 'memcached_agent_connection_errors_total{reason="timeout"}') >= 1
            assert healthz(pod).startswith("memcached: ")
        eventually(lambda: value(pod, "memcached_up") == 1, 30, "the agent reports memcached")
        assert restarts(pod)[AGENT] == 0

    def test_metrics_continue_at_the_connection_limit(self, namespace: str, pod: Object) -> None:
        with at_connection_limit(pod):
            assert value(pod, "memcached_up") == 1
            assert value(pod, "memcached_connections_rejected_total") >= 1

    def test_agent_that_starts_at_the_connection_limit_says_so(self, namespace: str, pod: Object) -> None:
        with at_connection_limit(pod):
            send_signal(pod, AGENT, signal.SIGKILL)
            # Before the kubelet starts the agent again, one more client uses the connection of the previous one.
            client = eventually(lambda: connected(pod), 5, "the connection of the agent is closed")
            assert client is not None
            with client, at_connection_limit(pod):
                eventually(lambda: restarts(pod)[AGENT] > 0, RECOVERY, "the agent was restarted")
                eventually(lambda: "connection limit" in healthz(pod), 30, "the agent says why")
                assert value(pod, "memcached_up") == 0
                wait_until_ready(namespace, timeout=RECOVERY)
        eventually(lambda: value(pod, "memcached_up") == 1, 30, "the agent reports memcached")


@contextmanager
def at_connection_limit(pod: Object) -> Generator[None]:
    """As many clients as memcached accepts, during the block."""
    with ExitStack() as stack:
        for _ in range(64):
            client = connected(pod)
            if client is None:
                break
            stack.enter_context(client)
        else:
            raise AssertionError("memcached accepts every connection")
        yield


def connected(pod: Object) -> socket.socket | None:
    """A connection that memcached has accepted; None if it refuses it."""
    client = socket.create_connection((pod["status"]["podIP"], 11211), timeout=10)
    with suppress(ConnectionError):
        client.sendall(b"version\r\n")
        if client.recv(4096).startswith(b"VERSION"):
            return client
    client.close()
    return None


def test_prometheus_scrapes_all_pods_and_answers_the_documented_queries(namespace: str) -> None:
    kube.apply(monitored(namespace, size=3))
    wait_until_ready(namespace)
    pods = pods_of(namespace)
    with prometheus(scrape_configs(pods)) as server:
        for pod in pods:
            send_commands(pod["status"]["podIP"], 11211, b"set key 0 0 5", b"value", b"get key", b"get other")
        eventually(lambda: len(server.query("memcached_up == 1")) == 3, 60, "Prometheus has scraped three pods")
        found = {each["metric"]["pod"]: each for each in server.query("memcached_current_items == 1")}
        assert found.keys() == {pod["metadata"]["name"] for pod in pods}
        assert len(QUERIES) >= 10
        for question, query in QUERIES.items():
            expected = 0 if query == "memcached_up == 0" else 3
            check = _answers(server, query.replace("[5m]", "[30s]"), expected)
            eventually(check, 60, f"{question} {query}: {expected} or more series")
        assert {each["health"] for each in server.targets()} == {"up"}


def _answers(server: Prometheus, query: str, expected: int) -> Any:
    return lambda: len(server.query(query)) >= expected


def scrape_configs(pods: list[Object]) -> list[Object]:
    """A configuration with the result of a PodMonitor: Debian builds Prometheus without the discovery of pods."""
    targets = [
        {
            "targets": [f"{pod['status']['podIP']}:{METRICS_PORT}"],
            "labels": {"namespace": pod["metadata"]["namespace"], "pod": pod["metadata"]["name"], "container": AGENT},
        }
        for pod in pods
    ]
    return [{"job_name": "memcached", "static_configs": targets}]


def test_documented_discovery_finds_the_pods(namespace: str) -> None:
    kube.apply(monitored(namespace, size=1))
    wait_until_ready(namespace)
    (pod,) = pods_of(namespace)
    block = next(text for text in re.findall(r"```yaml\n(.*?)```", DOCUMENT, re.DOTALL) if "scrape_configs" in text)
    keep = yaml.safe_load(block)["scrape_configs"][0]["relabel_configs"][0]
    ports = [each["name"] for container in pod["spec"]["containers"] for each in container["ports"]]
    known = {
        "__meta_kubernetes_pod_label_app_kubernetes_io_managed_by": pod["metadata"]["labels"][labels.MANAGED_BY],
        "__meta_kubernetes_pod_container_port_name": "",
    }
    found = [{**known, "__meta_kubernetes_pod_container_port_name": port} for port in ports]
    joined = [";".join(each[name] for name in keep["source_labels"]) for each in found]
    assert [ports[number] for number, text in enumerate(joined) if re.fullmatch(keep["regex"], text)] == ["metrics"]


def test_monitoring_can_be_switched_on_and_off(namespace: str) -> None:
    kube.apply(monitored(namespace, size=1, monitoring={"enabled": False}))
    wait_until_ready(namespace)
    (before,) = pods_of(namespace)
    assert [each["name"] for each in before["spec"]["containers"]] == [MEMCACHED]
    assert "agent" not in must_get("memcacheds", namespace, "cache")["spec"]
    said = kubectl("apply", "-f", "-", stdin=monitored(namespace, size=1)).stderr
    assert "this change replaces 1 pod; its cached items are lost" in said
    wait_until_ready(namespace)
    eventually(lambda: len(pods_of(namespace)) == 1, 60, "the previous pod is deleted")
    (pod,) = pods_of(namespace)
    operator = must_get("deployments", "memcached-operator-system", "memcached-operator-controller-manager")
    image = operator["spec"]["template"]["spec"]["containers"][0]["image"]
    assert must_get("memcacheds", namespace, "cache")["spec"]["agent"] == {"image": image}
    assert [each["image"] for each in pod["spec"]["containers"]][1] == image
    assert image in kubectl("get", "memcacheds", "-n", namespace, "-o", "wide").stdout
    kube.apply(monitored(namespace, size=1, monitoring={"enabled": False}))
    eventually(lambda: [len(each["spec"]["containers"]) for each in pods_of(namespace)] == [1], 60, "no agent")


def test_pod_monitor_appears_with_its_api_and_disappears_with_the_field(namespace: str) -> None:
    kube.apply(monitored(namespace, size=1, monitoring={"podMonitor": {"interval": "15s", "labels": {"team": "web"}}}))
    wait_until_ready(namespace)  # without the API, and not degraded
    crd = monitor_crd(POD_MONITORS)
    kube.apply(crd)
    try:
        found = eventually(lambda: pod_monitor(namespace), 90, "the PodMonitor is created")
        assert found is not None
        assert found["spec"]["podMetricsEndpoints"] == [{"port": "metrics", "interval": "15s"}]
        assert found["metadata"]["labels"]["team"] == "web"
        (pod,) = pods_of(namespace)
        selected = found["spec"]["selector"]["matchLabels"].items()
        assert selected <= pod["metadata"]["labels"].items()
        kube.apply(monitored(namespace, size=1, monitoring={"podMonitor": {"enabled": False}}))
        eventually(lambda: pod_monitor(namespace) is None, 30, "the PodMonitor is deleted")
        assert [each["metadata"]["uid"] for each in pods_of(namespace)] == [pod["metadata"]["uid"]]
    finally:
        kubectl("delete", "crd", crd["metadata"]["name"])


def pod_monitor(namespace: str) -> Object | None:
    """The PodMonitor; None also while its API is not served."""
    return kube.read(f"{POD_MONITORS.path(namespace)}/cache")
