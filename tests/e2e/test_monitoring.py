"""Metrics of caches, with real pods, a real Prometheus, and faults of the agent and of memcached."""

import re
import signal
import socket
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
import yaml

from bundle.images import related_variables
from memcached_operator.kube import labels
from support import installed, kube
from support.agents import restarts, targets, value
from support.code_blocks import code_blocks
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, memcached, pods_of, send_commands, wait_until_ready
from support.processes import send_signal
from support.prometheus import Prometheus, prometheus
from support.waiting import READY, REQUEST, ROLLOUT

DOCUMENT = (Path(__file__).parents[2] / "docs/monitoring.md").read_text()
_ROW = re.compile(r"^\| ([A-Z][^|]*) \| `([^`]+)` \|$", re.MULTILINE)
QUERIES = {
    question: query.replace(r"\|", "|") for question, query in _ROW.findall(DOCUMENT.partition("\n### Queries\n")[2])
}
SILENT = re.compile(r"memcached_up == 0|rate\(memcached_extstore_")
"""How the queries begin that answer nothing for healthy servers without items on disks."""
AGENT, MEMCACHED = "agent", "memcached"
MANAGER = "memcached-operator-controller-manager"
PACKAGES = "/opt/memcached-operator/lib"
"""Where the packages are in our images."""

pytestmark = pytest.mark.usefixtures("cluster")


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
    with socket.create_connection((address, 11211), REQUEST) as client:
        yield found
        client.sendall(b"get key\r\n")
        assert b"VALUE key 0 5\r\nvalue\r\nEND\r\n" in client.recv(4096)
    assert b"value" in send_commands(address, 11211, b"get key")
    (after,) = pods_of(namespace)
    assert after["metadata"]["uid"] == found["metadata"]["uid"]
    assert restarts(after)[MEMCACHED] == 0


@pytest.mark.nightly
@pytest.mark.long(100)
def test_hanging_agent_and_one_out_of_memory_are_restarted(namespace: str, pod: Object) -> None:
    """The kernel kills the largest process. Shared memory counts, but belongs to none: that is the agent."""
    send_signal(pod, AGENT, signal.SIGSTOP)
    wait_until_restarted(namespace, pod, 1)
    fill = ("dd", "if=/dev/zero", "of=/dev/shm/fill", "bs=1M", "count=60")
    kubectl("exec", pod["metadata"]["name"], "-n", namespace, "-c", AGENT, "--", *fill, check=False)
    wait_until_restarted(namespace, pod, 2)


def wait_until_restarted(namespace: str, pod: Object, times: int) -> None:
    """Wait until the agent was restarted and was killed each time, and the pod is ready again."""
    eventually(lambda: restarts(pod)[AGENT] == times, ROLLOUT, "the agent was restarted")
    wait_until_ready(namespace)
    eventually(lambda: value(pod, "memcached_up") == 1, description="the agent reports memcached")
    (last,) = (
        each["lastState"]["terminated"]
        for each in must_get("pods", namespace, pod["metadata"]["name"])["status"]["containerStatuses"]
        if each["name"] == AGENT
    )
    assert last["exitCode"] == 137


def test_prometheus_scrapes_all_pods_and_answers_the_documented_queries(namespace: str) -> None:
    kube.apply(monitored(namespace, size=3))
    wait_until_ready(namespace)
    pods = pods_of(namespace)
    assert_documented_discovery_keeps(pods[0])
    assert_agent_has_its_own_image(namespace, pods[0])
    with prometheus(scrape_configs(pods)) as server:
        for pod in pods:
            send_commands(pod["status"]["podIP"], 11211, b"set key 0 0 5", b"value", b"get key", b"get other")
        eventually(lambda: len(server.query("memcached_up == 1")) == 3, READY, "Prometheus has scraped three pods")
        found = {each["metric"]["pod"]: each for each in server.query("memcached_current_items == 1")}
        assert found.keys() == {pod["metadata"]["name"] for pod in pods}
        assert len(QUERIES) >= 10
        for question, query in QUERIES.items():
            answered = _answers(server, query.replace("[5m]", "[30s]"), silent=bool(SILENT.match(query)))
            eventually(answered, READY, f"{question} {query}: an answer for each pod, or none of a healthy one")
        assert {each["health"] for each in server.targets()} == {"up"}


def _answers(server: Prometheus, query: str, *, silent: bool) -> Callable[[], bool]:
    """Whether a query has no answer (`silent`), or one or more for each of the three pods."""
    if silent:
        return lambda: not server.query(query)
    return lambda: len(server.query(query)) >= 3


def scrape_configs(pods: list[Object]) -> list[Object]:
    """A configuration with the result of a PodMonitor: Debian builds Prometheus without the discovery of pods."""
    return [{"job_name": "memcached", "static_configs": targets(pods)}]


def assert_agent_has_its_own_image(namespace: str, pod: Object) -> None:
    """Assert that a pod runs the agent's image of the release, and that this contains nothing else of ours."""
    (manager,) = must_get("deployments", installed.NAMESPACE, MANAGER)["spec"]["template"]["spec"]["containers"]
    image = {each["name"]: each["image"] for each in pod["spec"]["containers"]}[AGENT]
    assert image == related_variables(manager)["RELATED_IMAGE_AGENT"] != manager["image"]
    listed = kubectl("exec", pod["metadata"]["name"], "-n", namespace, "-c", AGENT, "--", "ls", PACKAGES).stdout
    assert [each for each in listed.split() if not each.endswith(".dist-info")] == ["memcached_agent", "memcached_tls"]


def assert_documented_discovery_keeps(pod: Object) -> None:
    """Assert that the relabelling rule of the document keeps exactly the port for metrics of a pod."""
    block = next(text for text in code_blocks(DOCUMENT, "yaml") if "scrape_configs" in text)
    keep = yaml.safe_load(block)["scrape_configs"][0]["relabel_configs"][0]
    ports = [each["name"] for container in pod["spec"]["containers"] for each in container["ports"]]
    known = {
        "__meta_kubernetes_pod_label_app_kubernetes_io_managed_by": pod["metadata"]["labels"][labels.MANAGED_BY],
        "__meta_kubernetes_pod_container_port_name": "",
    }
    found = [{**known, "__meta_kubernetes_pod_container_port_name": port} for port in ports]
    joined = [";".join(each[name] for name in keep["source_labels"]) for each in found]
    assert [ports[number] for number, text in enumerate(joined) if re.fullmatch(keep["regex"], text)] == ["metrics"]
