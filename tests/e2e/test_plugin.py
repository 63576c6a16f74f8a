"""The kubectl plugin on a real cluster, with four kinds of caches."""

import json
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support import kube
from support.clients import Client, Server, certified, traffic, trusting
from support.kube import Object, eventually
from support.memcached import SMALL, by_slot, memcached, pods_of, wait_until_ready
from support.pki import CA
from support.plugin import kubectl_memcached
from support.secrets import names_of, tls_secret, users_secret
from support.waiting import ROLLOUT

USER = "web:a-long-password"
KEY = "user:7"

pytestmark = pytest.mark.usefixtures("cluster")


@dataclass(frozen=True)
class Kind:
    """A kind of cache. `agent`: whether its pods have one, which then predicts hit ratios. `spec`: what differs."""

    name: str
    agent: bool
    spec: dict[str, Any] = field(default_factory=dict[str, Any])

    def __str__(self) -> str:
        return self.name


INSIGHT: dict[str, Any] = {"identity": "Stable", "monitoring": {"insight": {}}}
KINDS = (
    Kind("plain", False, {"identity": "Pooled"}),
    Kind("monitored", True, {"rollout": {"warmUp": {}}}),
    Kind("tls", True, {"tls": {"secretName": "cache-tls", "clientAuth": "Require"}}),
    Kind("password", True, {"auth": {"secretName": "cache-users"}}),
)


def run(namespace: str, *words: str, code: int = 0) -> str:
    """The output of a command. Fails if its exit code is another one."""
    done = kubectl_memcached(*words, "-n", namespace)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def read(namespace: str, *words: str) -> Any:
    """The JSON of a command."""
    return json.loads(run(namespace, *words, "-o", "json"))


def certificate_days(namespace: str) -> set[int | None]:
    """The days that the certificates of the pods are valid."""
    return {row["certificateDaysLeft"] for row in read(namespace, "status", "cache")["pods"]}


def watchers(namespace: str) -> set[str]:
    """How many connections watch each memcached."""
    return {pod["stats"]["log_watchers"] for pod in read(namespace, "stats", "cache")["pods"]}


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_pods_are_read_through_forwarded_ports(kind: Kind, namespace: str, tmp_path: Path) -> None:
    pods, server = created(kind, namespace, tmp_path)
    names = [pod["metadata"]["name"] for pod in pods]
    status = read(namespace, "status", "cache")
    assert (status["ready"], sorted(row["pod"] for row in status["pods"])) == (True, sorted(names))
    assert {row["problem"] for row in status["pods"]} == {""}
    assert {row["agentProblem"] == "" for row in status["pods"]} == {kind.agent}
    assert {row["node"] for row in status["pods"]} == {pod["spec"]["nodeName"] for pod in pods}
    days = {row["certificateDaysLeft"] for row in status["pods"]}
    assert days == {None} or kind.name == "tls"
    assert {row["warm"] for row in status["pods"]} <= ({1.0} if kind.name == "monitored" else {None, 1.0})
    expected = {"1"} if kind.agent else {"0"}
    kube.eventually(lambda: watchers(namespace) == expected, description="agents watch evictions")
    if kind.name == "tls":
        kube.eventually(
            lambda: certificate_days(namespace) <= {88, 89}, description="each agent has read the certificate"
        )
    with Client(server) as client:
        client.store([KEY])
    (holder,) = (lookup for lookup in read(namespace, "find", "cache", KEY)["pods"] if lookup["item"])
    assert (holder["pod"], holder["item"]["expiresInSeconds"]) == (names[0], None)
    with traffic(server):
        watched = {pod["pod"]: pod for pod in read(namespace, "hotkeys", "cache", "--seconds", "2")["pods"]}
    assert [key["key"] for key in watched[names[0]]["keys"]] == ["any"]
    file = tmp_path / "report.zip"
    run(namespace, "report", "cache", "--file", str(file))
    with zipfile.ZipFile(file) as archive:
        content = {name.partition("/")[2]: archive.read(name).decode() for name in archive.namelist()}
    # memcached writes nothing to its log, and empty files are left out.
    logs = {f"logs/{name}-agent.log" for name in names}
    assert logs & content.keys() == (logs if kind.agent else set())
    assert {f"stats/{name}.txt" for name in names} <= content.keys()
    assert (USER.partition(":")[2] in str(content), "PRIVATE KEY" in str(content)) == (False, False)


def created(kind: Kind, namespace: str, folder: Path) -> tuple[list[Object], Server]:
    """Create a cache of this kind; return its pods, and the memcached of the first one for clients."""
    ca = CA()
    if kind.name == "tls":
        kube.apply(tls_secret(namespace, "cache-tls", ca.issue(names_of(namespace, "cache")), ca))
    if kind.name == "password":
        kube.apply(users_secret(namespace, "cache-users", USER))
    kube.apply(memcached(namespace, size=2, resources=SMALL, **(INSIGHT if kind.agent else {}), **kind.spec))
    wait_until_ready(namespace, timeout=ROLLOUT)
    pods = by_slot(namespace)
    context = certified(trusting(ca), ca.issue(["client"], client=True), str(folder)) if kind.name == "tls" else None
    user = USER if kind.name == "password" else None
    host = f"cache-0.cache.{namespace}.svc.cluster.local"
    return pods, Server(pods[0]["status"]["podIP"], 11211, host, context, user)


def test_pause_restart_and_resume(namespace: str) -> None:
    kube.apply(memcached(namespace, size=1, resources=SMALL))
    wait_until_ready(namespace)
    (before,) = pods_of(namespace)
    run(namespace, "pause", "cache")
    assert "is paused" in run(namespace, "restart", "cache")
    eventually(lambda: "rollout is paused" in run_any(namespace), description="status says that the rollout is paused")
    (still,) = pods_of(namespace)
    assert still["metadata"]["uid"] == before["metadata"]["uid"]
    run(namespace, "resume", "cache")
    eventually(lambda: uids(namespace).isdisjoint({before["metadata"]["uid"]}), ROLLOUT, "the pod is replaced")


def uids(namespace: str) -> set[str]:
    """The pods of the cache."""
    return {pod["metadata"]["uid"] for pod in pods_of(namespace)}


def run_any(namespace: str) -> str:
    """The advice of `status`, whose exit code depends on the rollout."""
    done = kubectl_memcached("status", "cache", "-n", namespace, "-o", "json")
    return " ".join(json.loads(done.stdout)["advice"])


def test_missing_object_has_its_exit_code(namespace: str) -> None:
    run(namespace, "status", "other", code=4)
