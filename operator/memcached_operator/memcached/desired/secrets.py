"""Certificates and passwords: the volumes of the Secrets that the spec names, and memcached's options for them.

The operator itself reads no Secret. The kubelet writes their content into the volumes, also while the pod runs.
"""

from collections.abc import Iterator
from typing import Any, Final

from memcached_api.memcached.effective import ports
from memcached_api.memcached.tls import LOOPBACK_PORT, TLS
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object, nested_list, nested_map

TLS_VOLUME: Final = "tls"
TLS_PATH: Final = "/etc/memcached/tls"
AUTH_VOLUME: Final = "auth"
AUTH_PATH: Final = "/etc/memcached/auth"

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
CA: Final = "ca.crt"
"""Keys of a Secret of type kubernetes.io/tls from cert-manager; the files have the same names."""
CLIENT_CA: Final = "client-ca.crt"
"""The file with `ca.crt` of `clientCASecretName`."""
USERS: Final = "users"
"""The key and the file with one user and password per line."""

_VERIFY_MODES: Final = {"Request": "1", "Require": "2"}
_VERSIONS: Final = {"1.2": "2", "1.3": "3"}
"""Values of memcached's options `ssl_verify_mode` and `ssl_min_version`; its --help lists them."""


def volumes(spec: MemcachedSpec) -> Iterator[Object]:
    """Build the volumes. Required keys are listed: the kubelet keeps the files of a Secret that loses one of them."""
    if spec.tls is not None:
        yield {"name": TLS_VOLUME, "projected": {"sources": list(_sources(spec.tls))}}
    if spec.auth is not None:
        content = {"secretName": spec.auth.secret_name, "items": [{"key": USERS, "path": USERS}]}
        yield {"name": AUTH_VOLUME, "secret": content}


def mounts(spec: MemcachedSpec) -> list[Object]:
    """The mounts of the volumes, the same in memcached's and in the agent's container."""
    secret_volumes = ((TLS_VOLUME, TLS_PATH, spec.tls), (AUTH_VOLUME, AUTH_PATH, spec.auth))
    return [
        {"name": name, "mountPath": path, "readOnly": True}
        for name, path, settings in secret_volumes
        if settings is not None
    ]


def certificate_secret(workload: Object) -> str | None:
    """The name of the Secret with the certificate of the pods of a workload, or None.

    During a pause, the workload has the template that exists, which another client can have changed.
    """
    pod_volumes = nested_list(workload, "spec", "template", "spec", "volumes")
    tls_volumes = (volume for volume in pod_volumes if volume["name"] == TLS_VOLUME)
    sources = (source for volume in tls_volumes for source in nested_list(volume, "projected", "sources"))
    return next((secret["name"] for source in sources if (secret := nested_map(source, "secret")).get("name")), None)


def options(spec: MemcachedSpec) -> Iterator[str]:
    """memcached's options."""
    if spec.tls is not None:
        yield from ("-l", ",".join(_addresses(spec)), "-Z", "-o", ",".join(_tls_options(spec.tls)))
    if spec.auth is not None:
        yield from ("-Y", f"{AUTH_PATH}/{USERS}")


def agent_options(spec: MemcachedSpec) -> Iterator[str]:
    """The agent's options; `memcached_agent.options` describes them."""
    if spec.tls is not None:
        yield from (f"--tls-directory={TLS_PATH}", f"--tls-port={ports(spec).tls}")
    if spec.auth is not None:
        yield f"--users-file={AUTH_PATH}/{USERS}"


def local_port(spec: MemcachedSpec) -> int:
    """The port on which the agent reaches memcached at 127.0.0.1, always without TLS."""
    return spec.container_port if spec.tls is None else LOOPBACK_PORT


def _sources(tls: TLS) -> Iterator[Object]:
    yield _source(tls.secret_name, {CERTIFICATE: CERTIFICATE, KEY: KEY})
    is_client_ca = tls.client_auth in _VERIFY_MODES and tls.client_ca_secret_name is None
    # Optional, because some issuers do not add their CA. It only verifies the certificate before it is used.
    yield _source(tls.secret_name, {CA: CA}, optional=not is_client_ca)
    if tls.client_auth in _VERIFY_MODES and tls.client_ca_secret_name is not None:
        yield _source(tls.client_ca_secret_name, {CA: CLIENT_CA})


def _source(name: str, files: dict[str, str], *, optional: bool = False) -> Object:
    items = [{"key": key, "path": path} for key, path in files.items()]
    source: dict[str, Any] = {"name": name, "items": items}
    return {"secret": source | ({"optional": True} if optional else {})}


def _addresses(spec: MemcachedSpec) -> Iterator[str]:
    """The addresses on which memcached listens. `*` is IPv4 and, where it is enabled, IPv6."""
    spec_ports = ports(spec)
    yield f"*:{spec_ports.tls}"
    if spec_ports.plain is not None:
        yield f"notls:*:{spec_ports.plain}"
    yield f"notls:127.0.0.1:{LOOPBACK_PORT}"


def _tls_options(tls: TLS) -> Iterator[str]:
    yield f"ssl_chain_cert={TLS_PATH}/{CERTIFICATE}"
    yield f"ssl_key={TLS_PATH}/{KEY}"
    if tls.client_auth in _VERIFY_MODES:
        yield f"ssl_ca_cert={TLS_PATH}/{CA if tls.client_ca_secret_name is None else CLIENT_CA}"
        yield f"ssl_verify_mode={_VERIFY_MODES[tls.client_auth]}"
        yield "ssl_session_cache"  # without it, memcached denies a client with a certificate that resumes its session
    yield f"ssl_min_version={_VERSIONS[tls.min_version or '1.2']}"
