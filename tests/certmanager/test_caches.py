"""cert-manager issues and renews the certificate of a cache as in docs/tls.md, and its agent makes memcached use it.

The test writes the files that the pods' volume names, as the kubelet does.
"""

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from certmanager.admission import served
from certmanager.certificates import CERTIFICATES, content, renew, revision
from cluster.public import releases
from integration.control_plane import NAMESPACES, ControlPlane
from integration.reloading import cache, check_kept, machine, store
from memcached_api.memcached.types import decode_spec
from memcached_operator.kube.resource import Key
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcached.desired.secrets import volumes
from support.code_blocks import located
from support.kube import kubectl
from support.pki import Pair

NAMESPACE = "shop"
CACHE = Key(MEMCACHEDS, NAMESPACE, "sessions")
CERTIFICATE = Key(CERTIFICATES, NAMESPACE, "sessions-tls")
AUTHORITY = Key(CERTIFICATES, NAMESPACE, "caches-ca")
NAMES = ("sessions.shop.svc.cluster.local", "sessions-0.sessions.shop.svc.cluster.local")
"""The names of the Service and of a slot."""


@pytest.fixture
def shop(plane: ControlPlane) -> Iterator[ControlPlane]:
    """A control plane with the objects of the page, whose certificates are issued."""
    plane.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    for number in (0, 1):
        kubectl("apply", "-f", "-", stdin=located("tls.md", "# TLS\n", number, ("yaml",)).text)
    for each in (AUTHORITY, CERTIFICATE):
        revision(plane, each)
    yield plane
    kubectl("delete", "namespace", NAMESPACE, "--wait")


def files(plane: ControlPlane) -> dict[str, bytes]:
    """The files of the volume for the certificate: the keys of the Secret that the operator names."""
    (volume,) = volumes(decode_spec(plane.must_get(CACHE)))
    found: dict[str, bytes] = {}
    for source in volume["projected"]["sources"]:
        secret = content(plane, NAMESPACE, source["secret"]["name"])
        found |= {each["path"]: secret[each["key"]] for each in source["secret"]["items"]}
    return found


def pair(found: dict[str, bytes]) -> Pair:
    """The certificate in files."""
    return Pair(found["tls.crt"], found["tls.key"], 0)


def test_cache_uses_renewed_certificates(
    shop: ControlPlane, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    node = machine(releases.VERSIONS[-1], tmp_path)
    first = files(shop)
    node.tls.write(first)
    with cache(node) as live:
        store(live.client)
        for renewed in ((), (CERTIFICATE,), (AUTHORITY, CERTIFICATE)):
            for each in renewed:
                renew(shop, each)
            found = files(shop)
            started = time.monotonic()
            node.tls.write(found)
            live.wait_served(pair(found))
            record_property(f"used after {len(renewed)} renewals (s)", f"{time.monotonic() - started:.1f}")
            # Clients have the first CA.
            assert {served(live.tls_port, name, first["ca.crt"]) for name in NAMES} == {pair(found).der}
        assert found["ca.crt"] != first["ca.crt"]
        check_kept(live.client)
