"""The pods of a cache: where memcached and the agent listen, and whether they run."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from kubectl_memcached.model import units
from kubectl_memcached.model.objects import Object, first, integer, mapping, objects, strings, text

MEMCACHED, AGENT = "memcached", "agent"
"""The names of the containers."""
DEFAULT_PORT: Final = 11211
METRICS: Final = "metrics"
"""The name of the agent's port with metrics."""
AUTH_VOLUME: Final = "auth"
PENDING: Final = "Pending"
"""The phase of a pod until each of its containers has started."""
CREATING: Final = "ContainerCreating"
STARTING: Final = (CREATING, "PodInitializing")
"""Reasons for which a container of a new pod waits at first."""
STUCK: Final = 60
"""Seconds after which a new pod whose containers have not started needs attention. Pulls can take as long."""
NO_REASON: Final = "no reason is reported"
MAX_MESSAGE: Final = 400
"""Characters of a message of the cluster. A terminated container can have 4 KiB of its log in it."""
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
class Container:
    """A container of a pod. `problem`: the reason if it does not run as it should, otherwise empty.

    `starting`: whether its problem is that its pod is new. `logged`: whether it has started, so that it has a log;
    `logged_before`: whether there is a log of its previous run. `last_exit`: a reason such as OOMKilled.
    """

    name: str
    problem: str = ""
    starting: bool = False
    logged: bool = True
    logged_before: bool = False
    restarts: int = 0
    last_exit: str = ""


@dataclass(frozen=True)
class Pod:
    """A pod. `problem`: the reason if its memcached does not run, otherwise empty.

    `cause`: the name of the container that the problem is about, or empty. `unscheduled`: what the scheduler says if
    the pod has no node, otherwise empty. `unready`: the reason if the pod is not ready, as the kubelet writes it.
    `since`: when its node accepted it, or empty. `image`: as in its spec. `containers`: all, init containers first.
    `deleting`: it is being deleted. `guaranteed`: its QoS class is Guaranteed.
    """

    name: str
    namespace: str
    node: str
    endpoint: Endpoint
    ready: bool
    problem: str = ""
    cause: str = ""
    unscheduled: str = ""
    unready: str = ""
    since: str = ""
    image: str = ""
    containers: tuple[Container, ...] = ()
    deleting: bool = False
    guaranteed: bool = False

    @property
    def memcached(self) -> Container:
        """The container of memcached."""
        return next((each for each in self.containers if each.name == MEMCACHED), Container(MEMCACHED, logged=False))


def pods(listed: Iterable[Object]) -> list[Pod]:
    """The pods of a list, in the order of their slots. Completed pods are left out."""
    listed_pods = [pod(obj) for obj in listed if text(obj, "status", "phase") not in ("Succeeded", "Failed")]
    return sorted(listed_pods, key=_slot_order)


def is_stuck(pod: Pod, now: float) -> bool:
    """Whether the containers of a pod may not start by themselves. `now`: seconds since 1970."""
    if any(each.problem and not each.starting for each in pod.containers):
        return True
    if not any(each.starting for each in pod.containers):
        return bool(pod.problem)
    accepted = units.seconds(pod.since)
    return accepted is not None and now - accepted > STUCK


def _slot_order(entry: Pod) -> list[tuple[bool, str]]:
    return [(part.isdecimal(), part.zfill(12)) for part in entry.name.split("-")]


def pod(obj: Object) -> Pod:
    """The parts of a pod that the commands show."""
    ready = first(objects(obj, "status", "conditions"), "type", "Ready")
    containers, unscheduled = tuple(_containers(obj)), _unscheduled(obj)
    return Pod(
        text(obj, "metadata", "name"),
        text(obj, "metadata", "namespace"),
        text(obj, "spec", "nodeName"),
        endpoint(obj),
        ready.get("status") == "True",
        *_problem(obj, containers, unscheduled),
        unscheduled,
        "" if ready.get("status") == "True" else bounded(text(ready, "message")),
        text(obj, "status", "startTime"),
        text(_container(obj, MEMCACHED), "image"),
        containers,
        bool(text(obj, "metadata", "deletionTimestamp")),
        text(obj, "status", "qosClass") == "Guaranteed",
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


def bounded(message: str) -> str:
    """A message of the cluster as a part of a sentence: one line of at most MAX_MESSAGE characters."""
    line = " ".join(message.split())
    return line if len(line) <= MAX_MESSAGE else f"{line[: MAX_MESSAGE - 1]}…"


def _containers(obj: Object) -> Iterator[Container]:
    for field, statuses in (("initContainers", "initContainerStatuses"), ("containers", "containerStatuses")):
        for container in objects(obj, "spec", field):
            name = text(container, "name")
            finite = field == "initContainers" and text(container, "restartPolicy") != "Always"
            yield _observed(name, first(objects(obj, "status", statuses), "name", name), finite)


def _observed(name: str, status: Object, finite: bool) -> Container:
    """A container with its status, which is empty until the kubelet has written one. `finite`: it must end."""
    waiting = mapping(status, "state", "waiting")
    terminated = mapping(status, "state", "terminated")
    before = mapping(status, "lastState", "terminated")
    return Container(
        name,
        "" if finite and terminated.get("exitCode") == 0 else _reason(waiting, terminated, before),
        not before and text(waiting, "reason") in STARTING,
        bool("running" in mapping(status, "state") or terminated or before),
        bool(before),
        integer(status, "restartCount") or 0,
        text(before, "reason"),
    )


def _reason(waiting: Object, terminated: Object, before: Object) -> str:
    """The reason why a container does not run. Empty if it does, or if nothing is known."""
    verb = "does not run" if terminated or before else "has not started"
    if not (details := waiting or terminated):
        return ""
    last = f"; it last exited with {_exit(before)}" if waiting and before else ""
    return f"{verb}: {_exit(details)}{last}"


def _exit(state: Object) -> str:
    code = integer(state, "exitCode")
    parts = [text(state, "reason"), bounded(text(state, "message")), "" if code is None else f"exit code {code}"]
    return ", ".join(part for part in parts if part) or NO_REASON


def _unscheduled(obj: Object) -> str:
    scheduled = first(objects(obj, "status", "conditions"), "type", "PodScheduled")
    if scheduled.get("status") != "False":
        return ""
    return bounded(text(scheduled, "message")) or text(scheduled, "reason") or NO_REASON


def _problem(obj: Object, containers: Sequence[Container], unscheduled: str) -> tuple[str, str]:
    """The reason why memcached does not run, or cannot be reached, and the container that is its cause; or empty."""
    memcached = next((each for each in containers if each.name == MEMCACHED), Container(MEMCACHED, logged=False))
    if memcached.problem and not memcached.starting:
        return f"{MEMCACHED} {memcached.problem}", MEMCACHED
    if unscheduled:
        return f"the pod has no node: {unscheduled}", ""
    phase = text(obj, "status", "phase") or PENDING
    other = next((each for each in containers if each.problem and not each.starting), None)
    if phase == PENDING and other:  # kubectl forwards no ports to it, even if memcached runs
        return f"the pod is {phase}: container {other.name} {other.problem}", other.name
    if memcached.problem:
        return f"{MEMCACHED} {memcached.problem}", MEMCACHED
    return "" if memcached.logged else f"the pod is {phase}", ""
