"""A rollout replaces pods one at a time and takes no capacity from clients."""

import json
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support import kube
from support.draining import ReadyPods
from support.kube import Object, eventually
from support.memcached import (
    IMAGE,
    OTHER_IMAGE,
    SMALL,
    conditions,
    memcached,
    pods_of,
    ready_addresses,
    send_commands,
    wait_until_degraded,
    wait_until_ready,
)

PAUSE = 0.1
"""Seconds between two rounds of the client."""


@dataclass
class Observed:
    """What was observed. `lowest`: the lowest number of ready pods; `endpoints`: of addresses behind the Service.

    `cause`: what happened to each pod until then, and the Events of the namespace. `requests`: those that succeeded.
    `errors`: those that failed, with their cause.
    """

    lowest: int = 0
    cause: str = ""
    endpoints: list[int] = field(default_factory=list[int])
    requests: int = 0
    errors: list[str] = field(default_factory=list[str])

    def assert_always(self, size: int) -> None:
        """Assert that this number of pods was ready at any time, and that every request succeeded."""
        assert self.requests, "the client sent no request"
        assert not self.errors, f"{len(self.errors)} requests failed: {self.errors[:3]}"
        assert self.lowest == size, f"{self.lowest} of {size} pods were ready: {self.cause}"
        assert min(self.endpoints) >= size, f"the Service had {min(self.endpoints)} of {size} addresses"


@contextmanager
def observed(namespace: str, name: str = "cache") -> Generator[Observed]:
    """Observe a ready Memcached until the block ends. The result is complete after the block."""
    found, stop = Observed(), threading.Event()
    eventually(lambda: ready_addresses(namespace, name), description="the Service has endpoints")
    client = threading.Thread(target=_request, args=(namespace, name, found, stop))
    with _events(namespace, name) as path:
        first = len(list(_read(path)))
        client.start()
        try:
            yield found
        finally:
            stop.set()
            client.join()
        counts = eventually(lambda: _counts(path, namespace, name), description="all events have arrived")
        found.lowest = min(counts[first - 1 :])
        found.cause = _cause(_read(path), namespace)


def _request(namespace: str, name: str, found: Observed, stop: threading.Event) -> None:
    """Ask every server that the Service names, again and again, with a new connection each."""
    while not stop.wait(PAUSE):
        addresses = ready_addresses(namespace, name)
        found.endpoints.append(len(addresses))
        for address in addresses:
            try:
                reply = send_commands(address, 11211, b"set key 0 0 5", b"value", b"get key")
            except OSError as error:
                found.errors.append(f"{address}: {error!r}")
            else:
                expected = reply == b"STORED\r\nVALUE key 0 5\r\nvalue\r\nEND\r\n"
                found.requests += expected
                found.errors += [] if expected else [f"{address}: {reply!r}"]


def _cause(events: Iterator[Object], namespace: str) -> str:
    """What happened to the pods of an object, and the Events of its namespace."""
    lines = [_line(event["type"], event["object"]) for event in events]
    happened = kube.kubectl("get", "events", "--sort-by=.metadata.creationTimestamp", "-n", namespace, check=False)
    return "\n".join([*lines, happened.stdout])


def _line(event: str, pod: Object) -> str:
    """Whether a pod was ready, whether it was being deleted, and what its containers did."""
    meta, statuses = pod["metadata"], pod["status"].get("containerStatuses", [])
    containers = [{name: each[name] for name in ("ready", "restartCount", "state")} for each in statuses]
    return f"{event} {meta['name']} ready={kube.ready(pod)} deleted={meta.get('deletionTimestamp')} {containers}"


@contextmanager
def _events(namespace: str, name: str) -> Generator[Path]:
    """Write the events of an object's pods to a file; the existing ones are the first."""
    command = [
        "kubectl",
        "get",
        "pods",
        "--watch",
        "--output-watch-events",
        "--output=json",
        f"--namespace={namespace}",
    ]
    command += [f"--selector=app.kubernetes.io/instance={name}"]
    with tempfile.NamedTemporaryFile() as file, subprocess.Popen(command, stdout=file) as process:
        try:
            path = Path(file.name)
            eventually(
                lambda: len(list(_read(path))) >= len(pods_of(namespace, name)), description="the watch has started"
            )
            yield path
        finally:
            process.terminate()


def _read(path: Path) -> Iterator[Object]:
    """The complete events of a file; the last one may be incomplete."""
    text, decoder = path.read_text(), json.JSONDecoder()
    at = 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        try:
            event, at = decoder.raw_decode(text, at)
        except json.JSONDecodeError:
            return
        yield event


def _counts(path: Path, namespace: str, name: str) -> list[int]:
    """The number of ready pods after each event; empty if events are missing."""
    ready = ReadyPods()
    for event in _read(path):
        ready.add(event["type"], event["object"])
    current = {pod["metadata"]["uid"] for pod in pods_of(namespace, name) if kube.ready(pod)}
    return ready.counts if ready.uids == current else []


SIZES = {"one": 1, "two": 2}
"""The size of each object whose rollouts are observed."""
STEADY: Object = {"minReadySeconds": 3}
"""A busy kubelet can report a new pod ready, and for an instant not ready, before it stays ready (measured: 0.14 s)."""
CHANGED: Object = {"image": OTHER_IMAGE, "cache": {"threads": 2}}
CHANGES = (CHANGED, {**CHANGED, "rollout": {"restartedAt": "2026-11-22T10:00:00Z"}})
"""Specs, one after the other, each of which replaces the pods."""

pytestmark = pytest.mark.usefixtures("cluster")


def apply_to_all(namespace: str, rollout: Object | None = None, **spec: Any) -> None:
    """Apply a spec to both objects."""
    for name, size in SIZES.items():
        kube.apply(memcached(namespace, name, size=size, resources=SMALL, rollout=STEADY | (rollout or {}), **spec))


def uids(namespace: str, name: str) -> set[str]:
    """The uids of an object's pods, without those being deleted."""
    return {pod["metadata"]["uid"] for pod in pods_of(namespace, name)}


def reported(namespace: str, name: str) -> Counter[str]:
    """The number of the operator's Events about an object, by reason."""
    events = [event for event in kube.items("events", namespace) if event["involvedObject"]["kind"] == "Memcached"]
    return Counter(event["reason"] for event in events if event["involvedObject"]["name"] == name)


@pytest.mark.race
def test_rollout_takes_nothing_from_clients(namespace: str) -> None:
    """Also at size 1, and with an image that does not exist."""
    apply_to_all(namespace, image=IMAGE)
    for name in SIZES:
        wait_until_ready(namespace, name)
    with observed(namespace, "one") as one, observed(namespace, "two") as two:
        for spec in CHANGES:
            before = {name: uids(namespace, name) for name in SIZES}
            apply_to_all(namespace, **spec)
            for name in SIZES:
                wait_until_ready(namespace, name)
                assert not before[name] & uids(namespace, name), f"{spec} must replace the pods"
        apply_to_all(namespace, image="localhost:1/no-such:image")
        for name in SIZES:
            wait_until_degraded(namespace, "ImageUnavailable", name)
            assert conditions(namespace, name)["Available"]["status"] == "True"
        for name in SIZES:
            kube.eventually(lambda name=name: reported(namespace, name)["RolloutStarted"] == 1 + len(CHANGES))
            assert reported(namespace, name)["Created"] == 0
            assert reported(namespace, name)["RolloutComplete"] >= len(CHANGES)
    one.assert_always(1)
    two.assert_always(2)
