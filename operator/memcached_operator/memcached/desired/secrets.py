"""Certificates and passwords: the volumes of the Secrets that the spec names, and memcached's options for them.

The operator itself reads no Secret. The kubelet writes their content into the volumes, also while the pod runs.
"""

from collections.abc import Iterator
from typing import Final

from memcached_api.memcached.resolved import ports
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object
from memcached_operator.parts import tls
from memcached_operator.parts.tls import TLS_PATH, TLS_VOLUME, mount

AUTH_VOLUME: Final = "auth"
AUTH_PATH: Final = "/etc/memcached/auth"
USERS: Final = "users"
"""The key and the file with one user and password per line."""


def volumes(spec: MemcachedSpec) -> Iterator[Object]:
    """Build the volumes. Required keys are listed: the kubelet keeps the files of a Secret that loses one of them."""
    if spec.tls is not None:
        yield tls.tls_volume(spec.tls)
    if spec.auth is not None:
        content = {"secretName": spec.auth.secret_name, "items": [{"key": USERS, "path": USERS}]}
        yield {"name": AUTH_VOLUME, "secret": content}


def mounts(spec: MemcachedSpec) -> list[Object]:
    """The mounts of the volumes, the same in memcached's and in the agent's container."""
    secret_volumes = ((TLS_VOLUME, TLS_PATH, spec.tls), (AUTH_VOLUME, AUTH_PATH, spec.auth))
    return [mount(name, path) for name, path, settings in secret_volumes if settings is not None]


def options(spec: MemcachedSpec) -> Iterator[str]:
    """The options of memcached for TLS and for accounts, with the files of the mounted Secrets."""
    if spec.tls is not None:
        served = ports(spec)
        yield from tls.tls_options(spec.tls, served.tls, served.plain)
    if spec.auth is not None:
        yield from ("-Y", f"{AUTH_PATH}/{USERS}")


def agent_options(spec: MemcachedSpec) -> Iterator[str]:
    """The agent's options; `memcached_agent.options` describes them."""
    if spec.tls is not None:
        yield from tls.agent_tls_options(ports(spec).tls)
    if spec.auth is not None:
        yield f"--users-file={AUTH_PATH}/{USERS}"


def local_port(spec: MemcachedSpec) -> int:
    """The port on which the agent reaches memcached at 127.0.0.1, always without TLS."""
    return tls.local_port(spec.container_port, spec.tls)
