"""From clients without TLS to clients with TLS, and the metrics in all modes."""

import re
import ssl
from pathlib import Path
from typing import Any

from support import kube
from support.agents import metrics
from support.clients import Client, Server, accepts, certified, traffic, trusting
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, memcached, pods_of, wait_until_ready
from support.pki import CA
from support.secrets import names_of, tls_secret, users_secret
from support.waiting import READY, ROLLOUT

SLOTS = 3


def slots(namespace: str, **spec: Any) -> Object:
    """A Memcached with a Service for each slot, whose addresses stay."""
    return memcached(namespace, size=SLOTS, identity="Stable", service={"perPod": True}, resources=SMALL, **spec)


def servers(namespace: str, port: int, context: ssl.SSLContext | None) -> list[Server]:
    """The slots at the addresses of their Services."""
    names = [f"cache-{slot}" for slot in range(SLOTS)]
    found = {each: must_get("services", namespace, each)["spec"]["clusterIP"] for each in names}
    return [Server(found[each], port, f"{each}.cache.{namespace}.svc.cluster.local", context) for each in names]


def change(obj: Object) -> str:
    """Apply a change and wait until it is complete; returns the warnings."""
    said = kubectl("apply", "-f", "-", stdin=obj).stderr
    wait_until_ready(obj["metadata"]["namespace"], timeout=ROLLOUT)
    return said


def test_clients_migrate_to_tls_while_one_pod_at_a_time_is_replaced(namespace: str) -> None:
    """The steps of docs/tls.md. At any time, requests fail only at the pod that is being replaced."""
    ca = CA()
    kube.apply(tls_secret(namespace, "cache-tls", ca.issue(names_of(namespace, "cache")), ca))
    kube.apply(slots(namespace))
    wait_until_ready(namespace)
    plain, encrypted = servers(namespace, 11211, None), servers(namespace, 11212, trusting(ca))
    tls = {"secretName": "cache-tls", "port": 11212}
    with traffic(*plain) as before:
        said = change(slots(namespace, tls={**tls, "plaintext": "Enabled"}))
    assert f"this change replaces {SLOTS} pods" in said
    assert (before.failed_together, before.reasons) == (0, before.reasons)
    data = must_get("configmaps", namespace, "cache-connection")["data"]
    assert (data["MEMCACHED_PORT"], data["MEMCACHED_TLS_PORT"]) == ("11211", "11212")
    with traffic(*plain, *encrypted) as during:
        eventually(lambda: during.rounds >= 20, READY, "20 rounds with and without TLS")
    assert (during.failed, during.reasons) == (0, [])
    with traffic(*encrypted) as after:
        said = change(slots(namespace, tls=tls))
    assert f"this change replaces {SLOTS} pods" in said
    assert (after.failed_together, after.reasons) == (0, after.reasons)
    data = must_get("configmaps", namespace, "cache-connection")["data"]
    assert (data["MEMCACHED_PORT"], data["MEMCACHED_TLS_PORT"]) == ("11212", "11212")
    assert [accepts(each) for each in (*plain, *encrypted)] == [False] * SLOTS + [True] * SLOTS


def test_metrics_are_the_same_with_tls_and_passwords(namespace: str, tmp_path: Path) -> None:
    ca, user = CA(), "web:secret"
    kube.apply(tls_secret(namespace, "cache-tls", ca.issue(names_of(namespace, "all")), ca))
    kube.apply(users_secret(namespace, "cache-users", user))
    auth, mutual = {"secretName": "cache-users"}, {"secretName": "cache-tls", "clientAuth": "Require"}
    modes: dict[str, dict[str, Any]] = {
        "plain": {"monitoring": {}},
        "all": {"monitoring": {"tls": {}}, "tls": mutual, "auth": auth},
    }
    for name, spec in modes.items():
        kube.apply(memcached(namespace, name, size=1, resources=SMALL, **spec))
    context = certified(trusting(ca), ca.issue(["client"], client=True), str(tmp_path))
    unnamed = trusting(ca)
    unnamed.check_hostname = False  # the address of a pod is in no certificate
    found: dict[str, dict[str, float]] = {}
    for name, spec in modes.items():
        wait_until_ready(namespace, name)
        (pod,) = pods_of(namespace, name)
        server = Server(
            pod["status"]["podIP"],
            11211,
            f"{name}.{namespace}.svc.cluster.local",
            context if "tls" in spec else None,
            user if "auth" in spec else None,
        )
        with Client(server) as client:
            client.store(f"key-{number}" for number in range(20))
            assert client.count([f"key-{number}" for number in range(25)]) == 20
        scheme = unnamed if spec["monitoring"] else None
        eventually(lambda tls=scheme, pod=pod: is_up(pod, tls), description=f"{name}: the agent has connected")
        found[name] = samples(metrics(pod, tls=scheme))
    for name, given in found.items():
        assert given.keys() == found["plain"].keys(), name
        for series in COUNTED:
            assert given[series] == found["plain"][series], (name, series)


def is_up(pod: Object, tls: ssl.SSLContext | None) -> bool:
    """Whether the agent serves the metrics of memcached. The pod is ready without it."""
    try:
        return "\nmemcached_up 1" in metrics(pod, tls=tls)
    except OSError:
        return False


COUNTED = (
    "memcached_up",
    "memcached_current_items",
    'memcached_commands_total{command="get",status="hit"}',
    'memcached_commands_total{command="get",status="miss"}',
)
"""Samples that follow from the requests. A login counts as no request."""
OWN = re.compile(r"memcached_agent_(last_reload|certificate)")


def samples(text: str) -> dict[str, float]:
    """The samples of a scrape, without those about reloads."""
    rows = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return {series: float(number) for series, _, number in rows if not OWN.match(series)}
