"""Objects for a report, without values that can be secret and without fields that only the API server needs."""

import re
from collections.abc import Callable, Collection, Mapping
from itertools import pairwise
from typing import Any, Final, cast

from kubectl_memcached.model.family import Family
from kubectl_memcached.model.objects import EMPTY, Object, mapping, objects, text
from kubectl_memcached.model.pods import MEMCACHED
from kubectl_memcached.model.redaction import REDACTED, redacted


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_DROPPED: Final = ("managedFields", "kubectl.kubernetes.io/last-applied-configuration")
"""Fields, and an annotation with a copy of the object."""
_ANNOTATIONS: Final = re.compile(
    r"memcached-operator\.example\.com/"
    r"(?:intent|retried-at|default(?:-agent)?-image|paused|template|created-from|update|warm-up|memory|args|ring)"
    r"|deployment\.kubernetes\.io/(?:revision|revision-history|desired-replicas|max-replicas)"
    r"|kubernetes\.io/limit-ranger"
    r"|kubectl\.kubernetes\.io/(?:restartedAt|default-container)"
    r"|controller\.kubernetes\.io/pod-deletion-cost"
    r"|cluster-autoscaler\.kubernetes\.io/safe-to-evict"
    r"|service\.kubernetes\.io/topology-mode"
)
"""Annotations whose values are no secrets: of the operator and of Kubernetes' own controllers. Others can be
credentials, or copies of objects, such as a whole pod template."""
_CONTAINER: Final = _words(
    "name image imagePullPolicy ports resources resizePolicy restartPolicy env envFrom volumeMounts volumeDevices"
    " securityContext terminationMessagePath terminationMessagePolicy stdin stdinOnce tty targetContainerName"
)
"""Fields of a container with names, paths and numbers. Others, such as commands and probes, can contain credentials."""
_OWN: Final = frozenset({"command", "livenessProbe", "readinessProbe", "lifecycle"})
"""Other fields that the operator sets in its containers. Only other clients set `args`, for example."""
_REDACTED: Final = ("postStart", "gmsaCredentialSpec")
"""Fields that the operator never sets, in a part of a container or a pod that is kept."""
_VOLUMES: Final = frozenset(
    {"name", "configMap", "downwardAPI", "emptyDir", "persistentVolumeClaim", "projected", "secret"}
)
"""Sources of volumes that contain only names. Those of others can have attributes with credentials."""
_CONDITIONS: Final = _words(
    "Available Progressing Degraded Ready Stalled ReplicaFailure DisruptionAllowed PodScheduled Initialized"
    " ContainersReady PodReadyToStartContainers DisruptionTarget PodResizePending PodResizeInProgress"
    " MemoryPressure DiskPressure PIDPressure NetworkUnavailable"
)
"""The types of conditions that the operator and Kubernetes set. Other controllers can write any message."""
_FROM_RUNTIME: Final = ("StartError", "ContainerCannotRun")
"""Reasons of a terminated container whose message is the container runtime's. Others can be the end of the log."""
_CONTENT: Final[Mapping[str, tuple[str, ...]]] = {
    "ConfigMap": ("data", "binaryData"),
    "PodMonitor": ("spec",),
    "PrometheusRule": ("spec",),
}
"""Fields of objects of other programs that can contain credentials, by kind."""
_ADDRESSES: Final = re.compile(r"MEMCACHED_[A-Z_]+|(?:tls-)?(?:fixed-)?servers")
"""The keys of the ConfigMap of a Memcached."""
_HASH: Final = "[bcdfghjklmnpqrstvwxz2456789]{1,10}"
"""The characters of the generated parts of names (k8s.io/apimachinery pkg/util/rand): no words."""
_CHILD: Final = rf"(?:-(?:connection|\d{{1,9}}|{_HASH}(?:-{_HASH})?))?"
"""The end of the name of a child or a pod, after the name of its Memcached."""
_KINDS: Final = _words(
    "Memcached Deployment StatefulSet ReplicaSet Pod Service PodDisruptionBudget NetworkPolicy ConfigMap PodMonitor"
    " PrometheusRule Endpoints EndpointSlice HorizontalPodAutoscaler"
)
"""The kinds of a Memcached, its children and pods, and of what selects or scales them. Empty: not known."""
_FIELD_PATH: Final = re.compile(r"spec\.(\w+)\{(.*)\}")
"""The container that an Event is about, as the kubelet writes it."""

Own = Mapping[str, Object]
"""The operator's containers, by name, as in the pod template."""


def cleaned(obj: Object, family: Family | None = None) -> dict[str, Any]:
    """The object without managed fields, copies of itself, and values that can be secret: of environment variables, of
    ConfigMaps and annotations of others, and commands, probes and messages of containers that are not the operator's.

    `family`: by which the operator's containers are known; without it, there are none. Raises ValueError for a Secret,
    which must never be part of a report.
    """
    if text(obj, "kind") == "Secret":
        raise ValueError("a report contains no Secrets")
    known = family or Family()
    found = cast("dict[str, Any]", _clean(obj, known.containers(obj)))
    for name in _CONTENT.get(text(obj, "kind"), ()):
        if name in found and not (known.has(obj) and name == "spec"):
            kept = _ADDRESSES if known.has(obj) and name == "data" else None
            found[name] = _values(mapping(obj, name), kept)
    return found


def event(obj: Object, own: Collection[str]) -> dict[str, Any]:
    """An Event, without its message if it is about a container that is not the operator's: this can be the output of a
    probe or a command. `own`: the names of the operator's containers in its pod.
    """
    found = cleaned(obj)
    about = _FIELD_PATH.fullmatch(text(obj, "involvedObject", "fieldPath"))
    if about and not (about[1] == "containers" and about[2] in own):
        found |= {name: REDACTED for name in ("message", "note") if name in found}
    return found


def without_managed_fields(obj: Object) -> dict[str, Any]:
    """A CustomResourceDefinition, whose schema has fields with names of those that are removed from other objects."""
    meta = mapping(obj, "metadata")
    return {**obj, "metadata": {name: meta[name] for name in meta if name not in ("managedFields", "annotations")}}


def _clean(value: Any, own: Own) -> Any:
    if isinstance(value, list):
        return [_clean(item, own) for item in cast("list[Any]", value)]
    if not isinstance(value, Mapping):
        return value
    fields = cast("Object", value)
    return {name: _field(name, content, own) for name, content in fields.items() if name not in _DROPPED}


def _field(name: str, content: Any, own: Own) -> Any:
    if name in _REDACTED:
        return REDACTED
    if name == "annotations" and isinstance(content, dict):
        return _values(cast("Object", content), _ANNOTATIONS)
    if name in _ITEMS and isinstance(content, list):
        items = cast("list[Any]", content)
        content = [_ITEMS[name](cast("Object", each), own) if isinstance(each, dict) else each for each in items]
    return _clean(content, own)


def _values(values: Object, kept: re.Pattern[str] | None = None) -> dict[str, Any]:
    """The values by name. Those whose names do not match `kept` are redacted."""
    return {
        name: value if kept and kept.fullmatch(name) else REDACTED
        for name, value in values.items()
        if name not in _DROPPED
    }


def _variable(fields: Object, _: Own) -> Object:
    return {**fields, "value": REDACTED} if "value" in fields else fields


def _source(fields: Object, _: Own) -> Object:
    return {**fields, "prefix": REDACTED} if "prefix" in fields else fields


def _condition(fields: Object, _: Own) -> Object:
    return {**fields, "message": REDACTED} if "message" in fields and fields.get("type") not in _CONDITIONS else fields


def _volume(fields: Object, _: Own) -> Object:
    return {name: content if name in _VOLUMES else REDACTED for name, content in fields.items()}


def _container(fields: Object, own: Own) -> Object:
    """A container. Of the operator's, fields that another client has changed in the pod are redacted as well."""
    template = own.get(text(fields, "name"), EMPTY)
    kept = {name for name in _OWN if _without_memory(template.get(name)) == _without_memory(fields.get(name))}
    return {name: content if name in kept | _CONTAINER else REDACTED for name, content in fields.items()}


def _without_memory(value: Any) -> Any:
    """A command without memcached's memory in MiB, which can be raised while the pod runs. Other values as they are."""
    if not isinstance(value, list):
        return value
    words = cast("list[Any]", value)
    return [
        None if before == "-m" and re.fullmatch(r"\d{1,9}", str(word)) else word
        for before, word in pairwise(["", *words])
    ]


def _status(fields: Object, own: Own) -> Object:
    """The status of a container, whose messages can contain its command or the end of its log."""
    name = text(fields, "name")
    states = {each: mapping(fields, each) for each in ("state", "lastState") if each in fields}
    return {**fields, **{each: _state(state, name, own) for each, state in states.items()}}


def _state(states: Object, name: str, own: Own) -> Object:
    return {each: _details(mapping(states, each), name, own) for each in states}


def _details(details: Object, name: str, own: Own) -> Object:
    if "message" not in details or (name in own and name != MEMCACHED):
        return details
    if name not in own:
        return {**details, "message": REDACTED}
    is_log = "exitCode" in details and text(details, "reason") not in _FROM_RUNTIME
    return {**details, "message": redacted(text(details, "message"))} if is_log else details


def _others(clean: Callable[[Object, Own], Object]) -> Callable[[Object, Own], Object]:
    """The same for init containers and ephemeral ones, none of which is the operator's."""
    return lambda fields, _: clean(fields, {})


_ITEMS: Final[Mapping[str, Callable[[Object, Own], Object]]] = {
    **dict.fromkeys(("env", "httpHeaders"), _variable),
    "envFrom": _source,
    "conditions": _condition,
    "volumes": _volume,
    "containers": _container,
    **dict.fromkeys(("initContainers", "ephemeralContainers"), _others(_container)),
    "containerStatuses": _status,
    **dict.fromkeys(("initContainerStatuses", "ephemeralContainerStatuses"), _others(_status)),
}
"""What is kept of each item of the lists with these names."""


def concerns(event: Object, name: str) -> bool:
    """Whether an Event is about a Memcached, one of its children, or one of their pods."""
    if text(event, "involvedObject", "kind") not in {*_KINDS, ""}:
        return False
    return re.fullmatch(re.escape(name) + _CHILD, text(event, "involvedObject", "name")) is not None


def node(obj: Object) -> dict[str, Any]:
    """The part of a node that a report contains: its resources, conditions and taints."""
    return {
        "name": text(obj, "metadata", "name"),
        "allocatable": dict(mapping(obj, "status", "allocatable")),
        "conditions": [dict(_condition(condition, {})) for condition in objects(obj, "status", "conditions")],
        "taints": [dict(taint) for taint in objects(obj, "spec", "taints")],
        "kubeletVersion": text(obj, "status", "nodeInfo", "kubeletVersion"),
        "unschedulable": mapping(obj, "spec").get("unschedulable") is True,
    }
