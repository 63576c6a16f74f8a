"""The files of a report. Parts that cannot be read are listed, and the rest is still collected."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kubectl_memcached.cluster.caches import Cache, Secrets
from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.cluster.sessions import Session, session
from kubectl_memcached.errors import ExitCode, PluginError
from kubectl_memcached.model.cleaning import cleaned, concerns, event, node, without_managed_fields
from kubectl_memcached.model.family import WORKLOADS, Family, family
from kubectl_memcached.model.objects import RESOURCE, Object, selector, text
from kubectl_memcached.model.pods import AGENT, MEMCACHED, Pod
from kubectl_memcached.model.redaction import redacted
from kubectl_memcached.model.statistics.replies import EXTSTORE

CHILDREN: Final = (
    *WORKLOADS,
    "services",
    "poddisruptionbudgets",
    "networkpolicies",
    "configmaps",
    "podmonitors.monitoring.coreos.com",
    "prometheusrules.monitoring.coreos.com",
)
STATS: Final = ("stats", "stats settings", "stats items", "stats slabs")
LOG_LINES: Final = 5000
"""The last lines of each log."""
LOG_BYTES: Final = 5 * 2**20
OTHERS: Final = "Containers that are not known to be the operator's can log secrets and keys"

NOT_RUNNING: Final = "memcached does not run or cannot be reached, see pods.json"


@dataclass
class Report:
    """Files by name. `missing`: the files that could not be read, by the reason."""

    files: dict[str, str] = field(default_factory=dict[str, str])
    missing: dict[str, list[str]] = field(default_factory=dict[str, list[str]])

    def add(self, name: str, read: Callable[[], str]) -> None:
        """Add a file, or the reason if it is missing. An empty file is left out."""
        try:
            if content := read():
                self.files[name] = content
        except PluginError as error:
            self.leave_out(name, error)

    def leave_out(self, name: str, error: PluginError) -> None:
        """Record the reason for a missing file."""
        self.missing.setdefault(str(error), []).append(name)

    def sentences(self) -> list[str]:
        """One sentence for each reason."""
        return [f"{', '.join(names)}: {reason}" for reason, names in self.missing.items()]


def collect(kubectl: Kubectl, cache: Cache, done: Callable[[], None]) -> Report:
    """Read everything about a cache. `done` is called after each pod."""
    report = Report()
    children = {kind: _children(kubectl, cache, kind, report) for kind in CHILDREN}
    known = family(cache.cr, [obj for kind in WORKLOADS for obj in children[kind]])
    report.files["memcached.json"] = _json(cleaned(cache.cr, known))
    report.files["pods.json"] = _json([cleaned(obj, known) for obj in cache.objects])
    for kind, listed in children.items():
        if listed:
            report.files[_file(kind)] = _json([cleaned(child, known) for child in listed])
    own = {text(obj, "metadata", "name"): frozenset(known.containers(obj)) for obj in cache.objects}
    report.add("events.json", lambda: _events(kubectl, cache, known, own))
    report.add("nodes.json", lambda: _nodes(kubectl, {pod.node for pod in cache.pods if pod.node}))
    report.add("versions.txt", lambda: kubectl.run("read the versions", "version"))
    report.add("crd.json", lambda: _crd(kubectl))
    secrets = Secrets(kubectl)
    for pod in cache.pods:
        _pod(kubectl, secrets, pod, own[pod.name], report)
        done()
    return report


def _children(kubectl: Kubectl, cache: Cache, kind: str, report: Report) -> list[Object]:
    labels = f"--selector={selector(cache.cr)}"
    try:
        return kubectl.list(f"list {kind}", kind, labels, namespace=cache.namespace)
    except PluginError as error:
        report.leave_out(_file(kind), error)
        return []


def _file(kind: str) -> str:
    return f"{kind.partition('.')[0]}.json"


def _events(kubectl: Kubectl, cache: Cache, known: Family, own: Mapping[str, Collection[str]]) -> str:
    """The Events of the cache. A pod that does not exist any more had the containers of the pod templates."""
    listed = kubectl.list("list events", "events", namespace=cache.namespace)
    found = [each for each in listed if concerns(each, cache.name)]
    return _json([event(each, own.get(text(each, "involvedObject", "name"), known.names)) for each in found])


def _nodes(kubectl: Kubectl, names: Iterable[str]) -> str:
    return _json([node(kubectl.get(f"read node {name}", "node", name)) for name in sorted(names)])


def _crd(kubectl: Kubectl) -> str:
    """The fields that the API server knows: those of the installed release."""
    crd: Object = kubectl.get(f"read the CustomResourceDefinition {RESOURCE}", "customresourcedefinition", RESOURCE)
    return _json(without_managed_fields(crd))


def _pod(kubectl: Kubectl, secrets: Secrets, pod: Pod, own: Collection[str], report: Report) -> None:
    """Read the logs and counters of a pod. `own`: the names of the operator's containers in it."""
    for container in pod.containers:
        if container.name not in own:
            report.leave_out(f"logs/{pod.name}-{container.name}.log", PluginError(OTHERS, ExitCode.POD))
            continue
        for previous in [False] * container.logged + [True] * container.logged_before:
            name = f"logs/{pod.name}-{container.name}{'-previous' if previous else ''}.log"
            report.add(name, lambda name=container.name, previous=previous: _log(kubectl, pod, name, previous))
    if pod.problem:  # its text can contain messages of containers of other programs
        report.leave_out(f"stats/{pod.name}.txt", PluginError(NOT_RUNNING, ExitCode.POD))
        return
    try:
        with session(kubectl, pod, secrets, agent=True) as opened:
            report.add(f"stats/{pod.name}.txt", lambda: _stats(opened))
            if pod.endpoint.metrics_port is not None and AGENT in own:
                report.add(f"agent/{pod.name}-metrics.txt", lambda: opened.agent("/metrics"))
                report.add(f"agent/{pod.name}-healthz.txt", lambda: opened.agent("/healthz"))
    except PluginError as error:
        report.leave_out(f"stats/{pod.name}.txt", error)


def _log(kubectl: Kubectl, pod: Pod, container: str, previous: bool) -> str:
    limits = [f"--tail={LOG_LINES}", f"--limit-bytes={LOG_BYTES}", "--timestamps=false"]
    words = ["logs", pod.name, f"--container={container}", *limits, *(["--previous"] if previous else [])]
    try:
        log = kubectl.run("read logs", *words, namespace=pod.namespace)
    except PluginError as error:
        if previous and "previous terminated container" in error.reason:
            return ""
        raise
    return redacted(log) if container == MEMCACHED else log


def _stats(opened: Session) -> str:
    with opened.memcached() as memcached:
        replies = {command: memcached.lines(command) for command in STATS}
        if EXTSTORE in replies["stats"]:
            replies["stats extstore"] = memcached.lines("stats extstore")
    return "".join(f"{command}\n{reply}\n".replace("\r\n", "\n") for command, reply in replies.items())


def _json(content: Any) -> str:
    return json.dumps(content, indent=2) + "\n"
