"""The operator for its dashboard: two controllers on a real API server, and admission, with work and with errors."""

import http.client
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from faults.webhook import Files, review
from integration.confined import create_account
from integration.control_plane import NAMESPACES, ControlPlane
from memcached_api.memcached.types import MEMCACHED
from memcached_operator.certificates.pki import issue
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_webhooks.admission import path_of
from support.clients import in_threads
from support.ports import free_port
from support.streams import unverified
from unit.config.rendered import render_directory

NAMESPACE, CACHES = "memcached-operator-system", "shop"
CONTROLLERS = ("6d9f5c7b84-h8k2x", "6d9f5c7b84-q4mzw")
ADMISSION = ("7c5b9d8f64-v2tlr",)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles")
CERTIFICATE = timedelta(days=90)
POLL = 0.2
"""Seconds between two looks at a process."""


def targets(ports: dict[str, int]) -> list[dict[str, object]]:
    """The targets of the ServiceMonitor, with the labels that it adds."""
    found: list[dict[str, object]] = []
    for pod, port in ports.items():
        component, container = ("webhook", "webhook") if "-webhook-" in pod else ("controller-manager", "manager")
        labels = {"namespace": NAMESPACE, "pod": pod, "container": container, "job": component, "endpoint": "metrics"}
        found.append({"targets": [f"127.0.0.1:{port}"], "labels": labels})
    return found


@contextmanager
def started(plane: ControlPlane, directory: Path) -> Generator[dict[str, int]]:
    """Run the processes with work during the block; returns the port of the metrics of each pod."""
    for name in (NAMESPACE, CACHES):
        plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    plane.create(ROLES, _role())
    account = create_account(plane, "controller", directory, NAMESPACE, role="incomplete")
    ports = {f"memcached-operator-controller-manager-{each}": free_port() for each in CONTROLLERS}
    with ExitStack() as stack:
        for pod, port in ports.items():
            environment = {"KUBECONFIG": str(account.kubeconfig), "POD_NAMESPACE": NAMESPACE, "POD_NAME": pod}
            flags = ("--leader-elect", f"--metrics-bind-address=127.0.0.1:{port}", "--health-probe-bind-address=0")
            stack.enter_context(_process("memcached_operator", flags, environment, directory / f"{pod}.log"))
        for each in ADMISSION:
            pod = f"memcached-operator-webhook-{each}"
            serving, ports[pod] = stack.enter_context(_admission(directory / f"{pod}.log"))
            stack.enter_context(in_threads(partial(_reviews, serving)))
        stack.enter_context(in_threads(partial(_changes, plane)))
        yield ports


def _role() -> Object:
    """The controller's permissions without some: lists of AppServices and writes of NetworkPolicies fail."""
    role = render_directory("config/default").one("ClusterRole", "memcached-operator-manager-role")
    lease = render_directory("config/default").one("Role", "memcached-operator-leader-election-role")
    rules = [each for each in role["rules"] if each["apiGroups"] not in (["app.example.com"], ["networking.k8s.io"])]
    read = {"apiGroups": ["networking.k8s.io"], "resources": ["networkpolicies"], "verbs": ["get", "list", "watch"]}
    return {"metadata": {"name": "incomplete"}, "rules": [*rules, read, *lease["rules"]]}


@contextmanager
def _process(module: str, flags: tuple[str, ...], environment: dict[str, str], log: Path) -> Generator[None]:
    """Run one of our programs during the block."""
    path = os.pathsep.join(filter(None, sys.path))
    words = [sys.executable, "-m", module, *flags]
    with in_threads(partial(_supervise, words, {**os.environ, "PYTHONPATH": path, **environment}, log)):
        yield


def _supervise(words: list[str], environment: dict[str, str], log: Path, stop: threading.Event) -> None:
    """Restart the process when it exits, as the kubelet does: on a busy machine, a leader may lose its Lease."""
    with log.open("ab") as output:
        while not stop.is_set():
            with subprocess.Popen(words, stderr=output, env=environment) as process:
                while process.poll() is None and not stop.wait(POLL):
                    pass
                process.terminate()


@contextmanager
def _admission(log: Path) -> Generator[tuple[int, int]]:
    """Its ports for reviews and for metrics."""
    port, metrics = free_port(), free_port()
    with tempfile.TemporaryDirectory() as directory:
        Files(Path(directory)).write_pair(issue(["localhost"], CERTIFICATE, datetime.now(UTC)))
        flags = (
            f"--webhook-port={port}",
            f"--webhook-cert-path={directory}",
            f"--metrics-bind-address=127.0.0.1:{metrics}",
            "--health-probe-bind-address=0",
        )
        with _process("memcached_webhooks", flags, {}, log):
            yield port, metrics


def _reviews(port: int, stop: threading.Event) -> None:
    """Reviews of valid objects and, each fifth time, of an invalid one."""
    for number in itertools.count():
        if stop.wait(0.1):
            return
        spec: dict[str, Any] = {"size": -1 if number % 5 == 0 else 3}
        body = json.dumps(review(MEMCACHED, {"metadata": {"name": "cache"}, "spec": spec}))
        with suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=10, context=unverified())
            for verb in ("mutate", "validate"):
                connection.request("POST", f"{path_of(verb, MEMCACHED)}?timeout=5s", body, _HEADERS)
                connection.getresponse().read()
            connection.close()


_HEADERS = {"Content-Type": "application/json"}


def _changes(plane: ControlPlane, stop: threading.Event) -> None:
    """Create caches, change one of them again and again, and one that cannot be reconciled."""
    for number in range(4):
        plane.create(MEMCACHEDS, _memcached(f"cache-{number}", {"size": 1}))
    denied: Object = {"size": 1, "networkPolicy": {"from": [{"podSelector": {}}]}}
    plane.create(MEMCACHEDS, _memcached("denied", denied))
    for number in itertools.count():
        if stop.wait(1):
            return
        with suppress(ApiError):
            plane.change(Key(MEMCACHEDS, CACHES, f"cache-{number % 4}"), {"spec": {"size": 1 + number % 3}})
            if number % 10 == 0:
                stamp = {"metadata": {"annotations": {"again": datetime.now(UTC).isoformat()}}}
                plane.change(Key(MEMCACHEDS, CACHES, "denied"), stamp)


def _memcached(name: str, spec: Object) -> Object:
    meta = {"name": name, "namespace": CACHES}
    return {"apiVersion": MEMCACHEDS.api_version, "kind": MEMCACHEDS.kind, "metadata": meta, "spec": spec}
