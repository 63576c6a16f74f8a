"""No alert fires while memcached and the operator are updated: with the delays of the plain file and real pods."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pytest

from incidents.scraping import SECOND
from support import installed, kube
from support.agents import targets
from support.clients import in_threads
from support.kube import Object, eventually, kubectl
from support.memcached import IMAGE, OTHER_IMAGE, SMALL, memcached, pods_of, wait_until_ready
from support.prometheus import server
from support.waiting import ROLLOUT

RULES: Final = (Path(__file__).parents[2] / "config/prometheus/memcached-operator.rules.yaml").read_text()
CACHES: Final[dict[str, Object]] = {
    "stable": {"identity": "Stable", "rollout": {"warmUp": {}}},
    "pooled": {"identity": "Pooled"},
}
OPERATOR_PORT: Final = 8383
LONGEST_WINDOW: Final = 15 * 60.0
"""Seconds after which an event has left the windows of all expressions but those about days."""
PERIOD: Final = 0.5
"""Seconds between two lists of pods."""

pytestmark = pytest.mark.usefixtures("cluster")


def test_no_alert_fires_while_memcached_and_the_operator_are_updated(namespace: str, tmp_path: Path) -> None:
    for name, spec in CACHES.items():
        kube.apply(memcached(namespace, name, size=3, image=OTHER_IMAGE, monitoring={}, resources=SMALL, **spec))
    for name in CACHES:
        wait_until_ready(namespace, name)
    file = tmp_path / "pods.json"
    discovery = [{"job_name": "file", "file_sd_configs": [{"files": [str(file)], "refresh_interval": "1s"}]}]
    with discovering(namespace, file), server(discovery, SECOND, {"rules.yaml": RULES}) as prometheus:
        eventually(lambda: len(prometheus.query("memcached_up == 1")) == 6, description="six servers are scraped")
        eventually(
            lambda: prometheus.query("leader_election_master_status == 1"), description="the controller is scraped"
        )
        for name in CACHES:
            patch = f'{{"spec": {{"image": "{IMAGE}"}}}}'
            kubectl("patch", "memcached", name, "-n", namespace, "--type=merge", f"--patch={patch}")
        for component in (installed.CONTROLLER, installed.WEBHOOK):
            kubectl("rollout", "restart", f"deployment/memcached-operator-{component}", "-n", installed.NAMESPACE)
        installed.wait_until_up()
        for name in CACHES:
            wait_until_ready(namespace, name, ROLLOUT)
        images = {pod["spec"]["containers"][0]["image"] for name in CACHES for pod in pods_of(namespace, name)}
        assert images == {IMAGE}
        # An alert that is not pending now cannot fire later because of the updates.
        eventually(lambda: not prometheus.query(UNEXPECTED), LONGEST_WINDOW, "no alert is pending")
        assert prometheus.query(f'max_over_time({UNEXPECTED[:-1]},alertstate="firing"}}[1h])') == []


UNEXPECTED: Final = 'ALERTS{alertname!~"MemcachedOperator(Outdated|Problem)Images"}'
"""The old image has known problems, which is reported until the update."""


@contextmanager
def discovering(namespace: str, file: Path) -> Generator[None]:
    """Keep a file of Prometheus's targets current during the block: what discovery does in a cluster."""

    def write() -> None:
        found = [target for name in CACHES for target in targets(pods_of(namespace, name))]
        found += [operator(pod) for pod in kube.items("pods", installed.NAMESPACE) if pod["status"].get("podIP")]
        new = file.with_suffix(".new")
        new.write_bytes(msgspec.json.encode(found))
        new.replace(file)

    def run(stop: threading.Event) -> None:
        while not stop.wait(PERIOD):
            write()

    write()
    with in_threads(run):
        yield


def operator(pod: Object) -> Object:
    """A process of the operator."""
    labels = {"job": pod["metadata"]["labels"]["app.kubernetes.io/component"], "namespace": installed.NAMESPACE}
    return {"targets": [f"{pod['status']['podIP']}:{OPERATOR_PORT}"], "labels": labels}
