"""TLS of caches on a real cluster: certificates that are renewed, broken and corrected, and the migration to TLS."""

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from support import kube
from support.agents import healthz, restarts, value
from support.clients import Client, Server, accepts, certified, traffic, trusting
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, memcached, pods_of, wait_until_degraded, wait_until_ready
from support.pki import CA, Pair
from support.secrets import MISSING_REPORTED, MOUNTED, RELOADED, names_of, secret, sync, tls_secret

KEYS = [f"key-{number}" for number in range(10_000)]


@dataclass(frozen=True)
class Cache:
    """A Memcached whose certificate is renewed. `client`: the certificate of clients, if they have one."""

    name: str
    identity: str
    client_auth: str
    clients_ca: bool = False

    @property
    def secret(self) -> str:
        """The name of the Secret with its certificate."""
        return f"{self.name}-tls"

    def spec(self) -> dict[str, Any]:
        """The spec, with a client CA of its own or that of its Secret."""
        ca = {"clientCASecretName": "clients"} if self.clients_ca else {}
        tls = {"secretName": self.secret, "clientAuth": self.client_auth, **ca}
        return {"size": 2, "identity": self.identity, "tls": tls, "resources": SMALL}


CACHES = (
    Cache("pooled-none", "Pooled", "None"),
    Cache("pooled-request", "Pooled", "Request"),
    Cache("pooled-require", "Pooled", "Require", clients_ca=True),
    Cache("stable-none", "Stable", "None"),
    Cache("stable-request", "Stable", "Request", clients_ca=True),
    Cache("stable-require", "Stable", "Require"),
)


def server(pod: Object, context: ssl.SSLContext, port: int = 11211) -> Server:
    """The memcached of a pod, with the name of its slot."""
    labels, namespace = pod["metadata"]["labels"], pod["metadata"]["namespace"]
    cache = labels["app.kubernetes.io/instance"]
    name = f"{cache}-0.{cache}.{namespace}.svc.cluster.local"
    return Server(pod["status"]["podIP"], port, name, context)


def serial(found: Server) -> int:
    """The serial number of the certificate that a server uses now."""
    with Client(found) as client:
        assert client.works()
        return client.serial


def test_renewed_certificate_is_used_without_a_restart(namespace: str, tmp_path: Path) -> None:
    """For all kinds of clients, with slots and without: no item, no connection and no request is lost."""
    old, new = CA("old"), CA("new")
    both = old.pem + new.pem
    first = {each: old.issue(names_of(namespace, each.name)) for each in CACHES}
    second = {each: new.issue(names_of(namespace, each.name)) for each in CACHES}
    kube.apply(secret(namespace, "clients", ca_crt=both))
    for each in CACHES:
        kube.apply(tls_secret(namespace, each.secret, first[each], both))
        kube.apply(memcached(namespace, each.name, **each.spec()))
    plain = trusting(old, new)
    with_certificate = certified(trusting(old, new), old.issue(["client"], client=True), str(tmp_path))
    servers: dict[Server, Cache] = {}
    for each in CACHES:
        wait_until_ready(namespace, each.name, timeout=120)
        context = plain if each.client_auth == "None" else with_certificate
        servers |= {server(pod, context): each for pod in pods_of(namespace, each.name)}
    assert len(servers) == 12
    for each, cache in servers.items():
        with Client(each) as client:
            client.store(KEYS)
            assert client.serial == first[cache].serial
    with traffic(*servers) as sent:
        for each in CACHES:
            kube.apply(tls_secret(namespace, each.secret, second[each], both))
        for each, cache in servers.items():
            eventually(lambda found=each, to=second[cache].serial: serial(found) == to, RELOADED, f"{cache.name}: new")
    assert (sent.failed, sent.reasons) == (0, [])
    assert sent.requests > 100
    for each in servers:
        with Client(each) as client:
            assert client.count(KEYS) == len(KEYS)
    for each in CACHES:
        for pod in pods_of(namespace, each.name):
            assert set(restarts(pod).values()) == {0}
            assert value(pod, 'memcached_agent_last_reload_successful{source="certificate"}') == 1


def test_clients_need_certificates_only_where_the_spec_says_so(namespace: str, tmp_path: Path) -> None:
    ours, others = CA("ours"), CA("others")
    for name, mode in (("request", "Request"), ("require", "Require")):
        kube.apply(tls_secret(namespace, f"{name}-tls", ours.issue(names_of(namespace, name)), ours))
        tls = {"secretName": f"{name}-tls", "clientAuth": mode}
        kube.apply(memcached(namespace, name, size=1, tls=tls, resources=SMALL))
    contexts = {
        "valid": certified(trusting(ours), ours.issue(["client"], client=True), str(tmp_path)),
        "invalid": certified(trusting(ours), others.issue(["client"], client=True), str(tmp_path)),
        "none": trusting(ours),
    }
    served: dict[str, list[str]] = {}
    for name in ("request", "require"):
        wait_until_ready(namespace, name)
        (pod,) = pods_of(namespace, name)
        served[name] = [each for each, context in contexts.items() if accepts(server(pod, context))]
    assert served == {"request": ["valid", "none"], "require": ["valid"]}


def test_minimum_version_is_enforced(namespace: str) -> None:
    ca = CA()
    kube.apply(tls_secret(namespace, "cache-tls", ca.issue(names_of(namespace, "cache")), ca))
    kube.apply(memcached(namespace, size=1, tls={"secretName": "cache-tls", "minVersion": "1.3"}, resources=SMALL))
    wait_until_ready(namespace)
    (pod,) = pods_of(namespace)
    older = trusting(ca)
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    assert [accepts(server(pod, each)) for each in (trusting(ca), older)] == [True, False]
    assert not accepts(Server(pod["status"]["podIP"], 11211))  # without TLS


@dataclass(frozen=True)
class Broken:
    """A Secret that cannot be used. `reason`: a part of what the agent says; empty if it cannot know."""

    content: dict[str, bytes] | None
    reason: str


def broken(ca: CA, good: Pair, names: list[str]) -> dict[str, Broken]:
    """The Secrets by what is wrong with them. None: it is deleted."""
    other = ca.issue(names)
    expired = ca.issue(names, not_after=datetime.now(UTC) - timedelta(hours=1))
    files = {"tls_crt": other.cert, "tls_key": other.key, "ca_crt": ca.pem}
    return {
        "wrong-key": Broken({**files, "tls_key": good.key}, "is not the key of"),
        "expired": Broken({**files, "tls_crt": expired.cert, "tls_key": expired.key}, "expired"),
        "wrong-ca": Broken({**files, "ca_crt": CA("others").pem}, "ca.crt"),
        "truncated": Broken({**files, "tls_crt": other.cert[: len(other.cert) // 2]}, "incomplete"),
        "key-removed": Broken({name: files[name] for name in ("tls_crt", "ca_crt")}, ""),
        "deleted": Broken(None, ""),
    }


def test_last_good_certificate_stays_in_use(namespace: str) -> None:
    """Each fault at the same time, on a cache of its own. All are reported, and all are corrected."""
    ca = CA()
    good = ca.issue([f"*.{each}.{namespace}.svc.cluster.local" for each in broken(ca, ca.issue(["a"]), ["a"])])
    faults = broken(ca, good, ["*.example.com"])
    pods: dict[str, Object] = {}
    for name in faults:
        kube.apply(tls_secret(namespace, f"{name}-tls", good, ca))
        kube.apply(memcached(namespace, name, size=1, tls={"secretName": f"{name}-tls"}, resources=SMALL))
    for name in faults:
        wait_until_ready(namespace, name, timeout=120)
        (pods[name],) = pods_of(namespace, name)
        with Client(server(pods[name], trusting(ca))) as client:
            client.store(["kept"])
    for name, fault in faults.items():
        kubectl("delete", "secret", f"{name}-tls", "-n", namespace)
        if fault.content is not None:
            kube.apply(secret(namespace, f"{name}-tls", "Opaque", **fault.content))
    for name, fault in faults.items():
        if fault.reason:
            _wait_until_said(pods[name], fault.reason)
        else:
            _wait_until_degraded_again(namespace, name)
    for pod in pods.values():
        assert serial(server(pod, trusting(ca))) == good.serial
        assert kube.ready(must_get("pods", namespace, pod["metadata"]["name"]))
    renewed = ca.issue([f"*.{each}.{namespace}.svc.cluster.local" for each in faults])
    for name in faults:
        kubectl("delete", "secret", f"{name}-tls", "-n", namespace, "--ignore-not-found")
        kube.apply(tls_secret(namespace, f"{name}-tls", renewed, ca))
    for name, pod in pods.items():
        eventually(
            lambda found=pod: _after_sync(found, renewed.serial, ca), RELOADED, f"{name}: the corrected certificate"
        )
        with Client(server(pod, trusting(ca))) as client:
            assert client.count(["kept"]) == 1
        assert set(restarts(pod).values()) == {0}
        eventually(lambda found=pod: healthz(found) == "ok\n", 30, f"{name}: no problem is reported")


def _wait_until_said(pod: Object, reason: str) -> None:
    """Wait until the agent says why the certificate is not in use."""

    def said() -> bool:
        sync([must_get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])])
        assert reason in healthz(pod), healthz(pod)
        return True

    eventually(said, RELOADED, f"{pod['metadata']['name']}: {reason}")
    assert healthz(pod).startswith("certificate: ")
    assert value(pod, 'memcached_agent_last_reload_successful{source="certificate"}') == 0


def _wait_until_degraded_again(namespace: str, name: str) -> None:
    """Wait until the operator reports a Secret that running pods lack. It looks when something else changes."""

    def reported() -> bool:
        cr = must_get("memcacheds", namespace, name)
        stamp = f"example.com/now={cr['metadata']['resourceVersion']}"
        kubectl("annotate", "memcached", name, "-n", namespace, "--overwrite", stamp)
        (pod,) = pods_of(namespace, name)
        sync([pod])
        degraded = wait_until_degraded(namespace, "SecretUnavailable", name, timeout=1)
        assert f"{name}-tls" in degraded["message"]
        assert "the pod keeps running with the previous files" in degraded["message"]
        return True

    eventually(reported, 240, f"{name}: SecretUnavailable")


def _after_sync(pod: Object, wanted: int, ca: CA) -> bool:
    sync([must_get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])])
    return serial(server(pod, trusting(ca))) == wanted


def test_missing_secret_is_named_and_used_when_it_appears(namespace: str) -> None:
    ca = CA()
    kube.apply(memcached(namespace, size=2, tls={"secretName": "cache-tls"}, resources=SMALL))
    degraded = wait_until_degraded(namespace, "SecretUnavailable", timeout=MISSING_REPORTED)
    assert 'secret "cache-tls" not found' in degraded["message"]
    assert "create the Secret cache-tls" in degraded["message"]
    kube.apply(tls_secret(namespace, "cache-tls", ca.issue(names_of(namespace, "cache")), ca))
    wait_until_ready(namespace, timeout=MOUNTED)
