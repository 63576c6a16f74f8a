"""The pods of a cache: where memcached and the agent listen, and whether they run."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kubectl_memcached.model.objects import Object, first, integer, mapping, objects, strings, text

MEMCACHED, AGENT = "memcached", "agent"
"""The names of the containers."""
DEFAULT_PORT: Final = 11211
METRICS: Final = "metrics"
"""The name of the agent's port with metrics."""
AUTH_VOLUME: Final = "auth"
_LOOPBACK: Final = re.compile(r"notls:(?:127\.0\.0\.1|\*):(\d+)")
"""Addresses without TLS, in memcached's option `-l`. The operator adds one at 127.0.0.1 for its agent."""


@dataclass(frozen=True)
class Endpoint:
    """The ports of a pod's processes that are reached by forwarding.

    `port`: that of memcached without TLS. None if it serves only TLS. `login_secret`: the Secret with its users, or an
    empty string. `metrics_port`: None without an agent. `https`: whether the agent serves HTTPS.
    """

    port: int | None
    login_secret: str = ""
    metrics_port: int | None = None
    https: bool = False


@dataclass(frozen=True)
class Pod:
    """A pod. `problem`: the reason if its memcached does not run, otherwise empty.

    `restarts` and `last_exit` (a reason such as OOMKilled) are those of memcached. `image`: as in its spec.
    """

    name: str
    namespace: str
    node: str
    endpoint: Endpoint
    ready: bool
    problem: str = ""
    restarts: int = 0
    last_exit: str = ""
    image: str = ""
    containers: tuple[str, ...] = ()


def pods(listed: Iterable[Object]) -> list[Pod]:
    """The pods of a list, in the order of their slots. Completed pods are left out."""
    listed_pods = [pod(obj) for obj in listed if text(obj, "status", "phase") not in ("Succeeded", "Failed")]
    return sorted(listed_pods, key=_slot_order)


def _slot_order(entry: Pod) -> list[tuple[bool, str]]:
    return [(part.isdecimal(), part.zfill(12)) for part in entry.name.split("-")]


def pod(obj: Object) -> Pod:
    """One pod."""
    status = first(objects(obj, "status", "containerStatuses"), "name", MEMCACHED)
    conditions = {
        text(condition, "type"): text(condition, "status") for condition in objects(obj, "status", "conditions")
    }
    return Pod(
        text(obj, "metadata", "name"),
        text(obj, "metadata", "namespace"),
        text(obj, "spec", "nodeName"),
        endpoint(obj),
        conditions.get("Ready") == "True",
        _problem(obj, status),
        integer(status, "restartCount") or 0,
        text(status, "lastState", "terminated", "reason"),
        text(_container(obj, MEMCACHED), "image"),
        tuple(text(container, "name") for container in objects(obj, "spec", "containers")),
    )


def endpoint(obj: Object) -> Endpoint:
    """The addresses in the spec of a pod."""
    container, agent = _container(obj, MEMCACHED), _container(obj, AGENT)
    words = [*strings(container, "command"), *strings(container, "args")]
    volumes = {text(volume, "name"): volume for volume in objects(obj, "spec", "volumes")}
    ports = {text(port, "name"): integer(port, "containerPort") for port in objects(agent, "ports")}
    return Endpoint(
        _port(words, container),
        text(volumes.get(AUTH_VOLUME, {}), "secret", "secretName"),
        ports.get(METRICS),
        "--metrics-tls" in strings(agent, "command"),
    )


def option(words: list[str], name: str) -> str:
    """The value that follows an option on a command line, or an empty string."""
    return next((value for word, value in pairwise(words) if word == name), "")


def _port(words: list[str], container: Object) -> int | None:
    plain = [int(port) for port in _LOOPBACK.findall(option(words, "-l"))]
    if plain:
        return plain[-1]
    if "-Z" in words or "--enable-ssl" in words:
        return None
    listed = [integer(port, "containerPort") for port in objects(container, "ports")]
    value = option(words, "-p")
    return int(value) if value.isdecimal() else next((port for port in listed if port), DEFAULT_PORT)


def _container(obj: Object, name: str) -> Object:
    return first(objects(obj, "spec", "containers"), "name", name)


def _problem(obj: Object, status: Object) -> str:
    if "running" in mapping(status, "state"):
        return ""
    for state in ("waiting", "terminated"):
        details = mapping(status, "state", state)
        if details:
            return f"memcached does not run: {_sentence(details)}"
    unscheduled = first(objects(obj, "status", "conditions"), "type", "PodScheduled")
    if unscheduled.get("status") == "False":
        return f"the pod has no node: {text(unscheduled, 'message')}"
    return f"the pod is {text(obj, 'status', 'phase') or 'Pending'}"


def _sentence(state: Object) -> str:
    code = integer(state, "exitCode")
    parts = [text(state, "reason"), text(state, "message"), "" if code is None else f"exit code {code}"]
    return ", ".join(part for part in parts if part) or "no reason is reported"
