"""TLS for clients: the volume of the Secrets that the spec names, and the options for it of memcached and the agent.

The operator itself reads no Secret. The kubelet writes their content into the volume, also while the pod runs.
"""

from collections.abc import Iterator
from typing import Any, Final

from memcached_api.shared.tls import LOOPBACK_PORT, TLS
from memcached_operator.kube.resource import Object, nested_list, nested_map

TLS_VOLUME: Final = "tls"
TLS_PATH: Final = "/etc/memcached/tls"

CERTIFICATE: Final = "tls.crt"
KEY: Final = "tls.key"
CA: Final = "ca.crt"
"""Keys of a Secret of type kubernetes.io/tls from cert-manager; the files have the same names."""
CLIENT_CA: Final = "client-ca.crt"
"""The file with `ca.crt` of `clientCASecretName`."""

_VERIFY_MODES: Final = {"Request": "1", "Require": "2"}
_VERSIONS: Final = {"1.2": "2", "1.3": "3"}
"""Values of memcached's options `ssl_verify_mode` and `ssl_min_version`; its --help lists them."""


def tls_volume(tls: TLS) -> Object:
    """Build the volume. Required keys are listed: the kubelet keeps the files of a Secret that loses one of them."""
    return {"name": TLS_VOLUME, "projected": {"sources": list(_sources(tls))}}


def mount(volume: str, path: str) -> Object:
    """The mount of a volume with Secrets, the same in memcached's and in the agent's container."""
    return {"name": volume, "mountPath": path, "readOnly": True}


def certificate_secret(workload: Object) -> str | None:
    """The name of the Secret with the certificate of the pods of a workload, or None.

    During a pause, the workload has the template that exists, which another client can have changed.
    """
    pod_volumes = nested_list(workload, "spec", "template", "spec", "volumes")
    tls_volumes = (volume for volume in pod_volumes if volume["name"] == TLS_VOLUME)
    sources = (source for volume in tls_volumes for source in nested_list(volume, "projected", "sources"))
    return next((secret["name"] for source in sources if (secret := nested_map(source, "secret")).get("name")), None)


def tls_options(tls: TLS, port: int | None, plain_port: int | None = None, *, loopback: str = "notls") -> Iterator[str]:
    """memcached's options. `port`: for clients with TLS. `plain_port`: for clients without TLS, if they are served.

    `loopback`: the tags of the agent's listener.
    """
    yield from ("-l", ",".join(_addresses(port, plain_port, loopback)), "-Z", "-o", ",".join(_settings(tls)))


def agent_tls_options(port: int | None) -> tuple[str, ...]:
    """The agent's options; `memcached_agent.options` describes them."""
    return f"--tls-directory={TLS_PATH}", f"--tls-port={port}"


def local_port(port: int, tls: TLS | None) -> int:
    """The port on which the agent reaches memcached at 127.0.0.1, always without TLS. `port`: that of clients."""
    return port if tls is None else LOOPBACK_PORT


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


def _addresses(port: int | None, plain_port: int | None, loopback: str) -> Iterator[str]:
    """The addresses on which memcached listens. `*` is IPv4 and, where it is enabled, IPv6."""
    yield f"*:{port}"
    if plain_port is not None:
        yield f"notls:*:{plain_port}"
    yield f"{loopback}:127.0.0.1:{LOOPBACK_PORT}"


def _settings(tls: TLS) -> Iterator[str]:
    yield f"ssl_chain_cert={TLS_PATH}/{CERTIFICATE}"
    yield f"ssl_key={TLS_PATH}/{KEY}"
    if tls.client_auth in _VERIFY_MODES:
        yield f"ssl_ca_cert={TLS_PATH}/{CA if tls.client_ca_secret_name is None else CLIENT_CA}"
        yield f"ssl_verify_mode={_VERIFY_MODES[tls.client_auth]}"
        yield "ssl_session_cache"  # without it, memcached denies a client with a certificate that resumes its session
    yield f"ssl_min_version={_VERSIONS[tls.min_version or '1.2']}"
