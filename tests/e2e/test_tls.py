"""TLS and passwords of caches on a real cluster: Secrets that are missing, changed, broken and corrected."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import kube
from support.agents import healthz, restarts, value
from support.clients import Client, Server, accepts, certified, traffic, trusting
from support.kube import Object, eventually, kubectl, must_get
from support.memcached import SMALL, memcached, pods_of, wait_until_degraded, wait_until_ready
from support.pki import CA
from support.secrets import names_of, secret, sync, tls_secret, users_secret
from support.waiting import MOUNTED, RELOADED, ROLLOUT, SECRET_REPORTED

KEYS = [f"key-{number}" for number in range(1000)]
OLD, NEW = "web:old", "web:new"

pytestmark = pytest.mark.usefixtures("cluster")


def server(pod: Object, context: ssl.SSLContext, user: str | None = None) -> Server:
    """The memcached of a pod, with the name of its slot."""
    labels, namespace = pod["metadata"]["labels"], pod["metadata"]["namespace"]
    cache = labels["app.kubernetes.io/instance"]
    name = f"{cache}-0.{cache}.{namespace}.svc.cluster.local"
    return Server(pod["status"]["podIP"], 11211, name, context, user)


def serial(found: Server) -> int:
    """The serial number of the certificate that a server uses now."""
    with Client(found) as client:
        assert client.works()
        return client.serial


def synced(pod: Object) -> Object:
    """The pod, after the kubelet was asked to update its volumes."""
    sync([must_get("pods", pod["metadata"]["namespace"], pod["metadata"]["name"])])
    return pod


@pytest.mark.smoke
def test_changed_certificate_and_password_are_used_without_a_restart(namespace: str) -> None:
    """No item, no connection and no request is lost."""
    old, new = CA("old"), CA("new")
    both, names = old.pem + new.pem, names_of(namespace, "cache")
    first, second = old.issue(names), new.issue(names)
    kube.apply(tls_secret(namespace, "cache-tls", first, both))
    kube.apply(users_secret(namespace, "cache-users", OLD))
    secrets: dict[str, Any] = {"tls": {"secretName": "cache-tls"}, "auth": {"secretName": "cache-users"}}
    kube.apply(memcached(namespace, size=1, resources=SMALL, **secrets))
    wait_until_ready(namespace)
    (pod,) = pods_of(namespace)
    trusted = trusting(old, new)
    before, after = server(pod, trusted, OLD), server(pod, trusted, NEW)
    assert not accepts(after)
    with Client(before) as kept:
        assert kept.serial == first.serial
        kept.store(KEYS)
        with traffic(before) as sent:
            kube.apply(tls_secret(namespace, "cache-tls", second, both))
            kube.apply(users_secret(namespace, "cache-users", NEW, OLD))
            eventually(lambda: accepts(server(synced(pod), trusted, NEW)), RELOADED, "the new password")
            eventually(lambda: serial(before) == second.serial, RELOADED, "the new certificate")
        assert (sent.failed, sent.reasons) == (0, [])
        kube.apply(users_secret(namespace, "cache-users", NEW))
        eventually(lambda: not accepts(server(synced(pod), trusted, OLD)), RELOADED, "the old password is refused")
        assert kept.count(KEYS) == len(KEYS)
    assert accepts(after)
    assert set(restarts(pod).values()) == {0}
    eventually(lambda: healthz(pod) == "ok\n", description="no problem is reported")


@dataclass(frozen=True)
class Cache:
    """A Memcached whose certificate is renewed. `client_auth`: whether clients have a certificate."""

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
    Cache("pooled-require", "Pooled", "Require", clients_ca=True),
    Cache("stable-request", "Stable", "Request"),
)


@pytest.mark.nightly
@pytest.mark.long(100)
def test_kubelet_brings_a_renewed_certificate_to_every_pod(namespace: str, tmp_path: Path) -> None:
    """In the time that users see: nothing asks the kubelet to update its volumes."""
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
        wait_until_ready(namespace, each.name)
        context = plain if each.client_auth == "None" else with_certificate
        servers |= {server(pod, context): each for pod in pods_of(namespace, each.name)}
    assert len(servers) == 2 * len(CACHES)
    for each, cache in servers.items():
        assert serial(each) == first[cache].serial
    with traffic(*servers) as sent:
        for each in CACHES:
            kube.apply(tls_secret(namespace, each.secret, second[each], both))
        for each, cache in servers.items():
            eventually(lambda found=each, to=second[cache].serial: serial(found) == to, RELOADED, f"{cache.name}: new")
    assert (sent.failed, sent.reasons) == (0, [])
    for each in CACHES:
        for pod in pods_of(namespace, each.name):
            assert set(restarts(pod).values()) == {0}
            assert value(pod, 'memcached_agent_last_reload_successful{source="certificate"}') == 1


def test_clients_need_what_the_spec_says(namespace: str, tmp_path: Path) -> None:
    ours, others = CA("ours"), CA("others")
    modes = {"request": {"clientAuth": "Request"}, "require": {"clientAuth": "Require"}, "newer": {"minVersion": "1.3"}}
    for name, mode in modes.items():
        kube.apply(tls_secret(namespace, f"{name}-tls", ours.issue(names_of(namespace, name)), ours))
        tls = {"secretName": f"{name}-tls", **mode}
        kube.apply(memcached(namespace, name, size=1, tls=tls, resources=SMALL))
    older = trusting(ours)
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    contexts = {
        "valid": certified(trusting(ours), ours.issue(["client"], client=True), str(tmp_path)),
        "invalid": certified(trusting(ours), others.issue(["client"], client=True), str(tmp_path)),
        "none": trusting(ours),
        "older": older,
    }
    served: dict[str, list[str]] = {}
    for name in modes:
        wait_until_ready(namespace, name)
        (pod,) = pods_of(namespace, name)
        served[name] = [each for each, context in contexts.items() if accepts(server(pod, context))]
        assert not accepts(Server(pod["status"]["podIP"], 11211)), "without TLS"
    # `newer` requests no certificate, so it does not see the invalid one.
    assert served == {
        "request": ["valid", "none", "older"],
        "require": ["valid"],
        "newer": ["valid", "invalid", "none"],
    }


@pytest.mark.nightly
@pytest.mark.long(130)
def test_last_good_certificate_stays_in_use(namespace: str) -> None:
    """A Secret with another key, which the agent reports, and a deleted one, which the operator reports."""
    ca = CA()
    caches = ("wrong-key", "deleted")
    names = [name for each in caches for name in names_of(namespace, each)]
    good, other, renewed = (ca.issue(names) for _ in range(3))
    pods: dict[str, Object] = {}
    for name in caches:
        kube.apply(tls_secret(namespace, f"{name}-tls", good, ca))
        kube.apply(memcached(namespace, name, size=1, tls={"secretName": f"{name}-tls"}, resources=SMALL))
    for name in caches:
        wait_until_ready(namespace, name)
        (pods[name],) = pods_of(namespace, name)
    files = {"tls_crt": other.cert, "tls_key": good.key, "ca_crt": ca.pem}
    kubectl("delete", "secret", *(f"{name}-tls" for name in caches), "-n", namespace)
    kube.apply(secret(namespace, "wrong-key-tls", "Opaque", **files))
    pod = pods["wrong-key"]
    eventually(lambda: "is not the key of" in healthz(synced(pod)), RELOADED, "the agent reports the wrong key")
    assert value(pod, 'memcached_agent_last_reload_successful{source="certificate"}') == 0
    eventually(lambda: reports_missing(namespace, "deleted"), ROLLOUT, "SecretUnavailable")
    kubectl("delete", "secret", "wrong-key-tls", "-n", namespace)
    for name, pod in pods.items():
        found = server(pod, trusting(ca))
        assert serial(found) == good.serial
        assert kube.ready(must_get("pods", namespace, pod["metadata"]["name"]))
        kube.apply(tls_secret(namespace, f"{name}-tls", renewed, ca))
        eventually(lambda pod=pod: serial(server(synced(pod), trusting(ca))) == renewed.serial, RELOADED, name)
        assert set(restarts(pod).values()) == {0}
        eventually(lambda found=pod: healthz(found) == "ok\n", description=f"{name}: no problem is reported")


def reports_missing(namespace: str, name: str) -> bool:
    """Whether the operator reports a Secret that a running pod lacks. It looks when something else changes."""
    cr = must_get("memcacheds", namespace, name)
    stamp = f"example.com/now={cr['metadata']['resourceVersion']}"
    kubectl("annotate", "memcached", name, "-n", namespace, "--overwrite", stamp)
    (pod,) = pods_of(namespace, name)
    synced(pod)
    degraded = wait_until_degraded(namespace, "SecretUnavailable", name, timeout=1)
    assert f"{name}-tls" in degraded["message"]
    assert "the pod keeps running with the previous files" in degraded["message"]
    return True


@pytest.mark.nightly
@pytest.mark.long(100)
def test_missing_secrets_and_keys_are_named_until_they_exist(namespace: str) -> None:
    """As the kubelet words it: for a certificate, which is projected, and for users."""
    ca = CA()
    kube.apply(memcached(namespace, "tls", size=1, tls={"secretName": "tls-files"}, resources=SMALL))
    kube.apply(memcached(namespace, "auth", size=1, auth={"secretName": "auth-files"}, resources=SMALL))
    kube.apply(memcached(namespace, "key", size=1, auth={"secretName": "key-files"}, resources=SMALL))
    kube.apply(secret(namespace, "key-files", other=b"x"))
    for name in ("tls", "auth"):
        message = wait_until_degraded(namespace, "SecretUnavailable", name, SECRET_REPORTED)["message"]
        assert message.startswith(f"Pod {name}-")
        assert f'secret "{name}-files" not found; create the Secret {name}-files in this namespace' in message
    message = wait_until_degraded(namespace, "SecretUnavailable", "key", SECRET_REPORTED)["message"]
    assert "references non-existent secret key: users; add the key users to the Secret key-files" in message
    kube.apply(tls_secret(namespace, "tls-files", ca.issue(names_of(namespace, "tls")), ca))
    for name in ("auth", "key"):
        kube.apply(users_secret(namespace, f"{name}-files", OLD))
    for name in ("tls", "auth", "key"):
        wait_until_ready(namespace, name, timeout=MOUNTED)
