"""A pause of the rollout of slots: a StatefulSet has no field for it, so a changed pod template is not written."""

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from memcached_api.annotations import HELD_ANNOTATION, PAUSED_ANNOTATION, TEMPLATE_ANNOTATION
from memcached_api.memcached.resolved import Ports, ports
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.compare import covers, digest, encoded, fingerprint
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.memcached.desired.pods import template_ports
from memcached_operator.parts.workloads import children

OUTDATED, UP_TO_DATE = "outdated", "up-to-date"
"""The values of PAUSED_ANNOTATION: whether the spec has another pod template, which is written after the pause."""

MAX_TEMPLATE_LENGTH = 65536
"""Characters of a template that is recorded: Kubernetes accepts 256 KiB of annotations. A longer one is kept as found.
"""

MAX_TEMPLATE_DEPTH = 32
"""Levels of a template that is recorded. Those of Kubernetes have about 15; deeper ones exhaust Python's stack."""


class _Metadata(msgspec.Struct):
    labels: dict[str, str]
    annotations: dict[str, str] = {}


class _Port(msgspec.Struct, rename="camel"):
    container_port: int
    name: str = ""


class _Container(msgspec.Struct):
    name: str
    image: str
    command: list[str] = []
    ports: list[_Port] = []


class _Named(msgspec.Struct):
    name: str = ""


class _Source(msgspec.Struct):
    secret: _Named | None = None


class _Projected(msgspec.Struct):
    sources: list[_Source] = []


class _Volume(msgspec.Struct):
    name: str
    projected: _Projected | None = None


class _PodSpec(msgspec.Struct):
    containers: list[_Container]
    volumes: list[_Volume] = []


class HeldTemplate(msgspec.Struct):
    """The parts of a recorded pod template that a plan reads. Another client can have written it."""

    metadata: _Metadata
    spec: _PodSpec


def with_pause(built: Object, live: Object | None, *, paused: bool) -> Object:
    """The desired StatefulSet. If `paused`, it keeps the pod template that `live` had when that began."""
    applied = {TEMPLATE_ANNOTATION: fingerprint(built["spec"]["template"])}
    if not paused:
        return children.with_metadata(built, {}, applied)
    if live is None or _is_applied(built, live, applied):
        return children.with_metadata(built, {}, {**applied, PAUSED_ANNOTATION: UP_TO_DATE})
    template = _held_template(live) or live["spec"]["template"]
    held = {**built, "spec": {**built["spec"], "template": template}}
    return children.with_metadata(held, {}, {**_recorded(live), **_record(template), PAUSED_ANNOTATION: OUTDATED})


def pause_notices(spec: MemcachedSpec, live: Object | None) -> Iterator[str]:
    """A sentence for the status if another client has changed the record of the template that is kept."""
    if live is None or not (spec.rollout and spec.rollout.paused):
        return
    annotations = nested_map(live, "metadata", "annotations")
    if (
        annotations.get(PAUSED_ANNOTATION) == OUTDATED
        and HELD_ANNOTATION in annotations
        and _held_template(live) is None
    ):
        yield (
            f"StatefulSet {live['metadata']['name']}: another client changed the annotation {HELD_ANNOTATION}; the "
            "operator ignores it, and keeps the present pod template during the pause"
        )


def served_ports(spec: MemcachedSpec, workload: Object | None) -> Ports:
    """The ports of the slots: during a pause, those of the pod template that stays, otherwise those of the spec."""
    if workload is None or nested_map(workload, "metadata", "annotations").get(PAUSED_ANNOTATION) != OUTDATED:
        return ports(spec)
    held = template_ports(workload["spec"]["template"])
    return held if any(held) else ports(spec)


def _record(template: Object) -> dict[str, str]:
    """The annotation that records a pod template, unless it is too long."""
    content = encoded(template)
    text = f"{digest(content)} {content.decode()}"
    return {HELD_ANNOTATION: text} if len(text) <= MAX_TEMPLATE_LENGTH else {}


def _held_template(live: Object) -> Object | None:
    """The pod template that was recorded during this pause, or None. One that another client changed is ignored."""
    annotations = nested_map(live, "metadata", "annotations")
    if annotations.get(PAUSED_ANNOTATION) != OUTDATED:
        return None
    _, _, text = annotations.get(HELD_ANNOTATION, "").partition(" ")
    try:
        template = msgspec.json.decode(text, type=dict[str, Any])
        msgspec.convert(template, HeldTemplate)
    except (msgspec.MsgspecError, RecursionError):  # deeply nested JSON: another client can change the annotation
        return None
    if _is_deeper(template, MAX_TEMPLATE_DEPTH):
        return None
    return template if _record(template) == {HELD_ANNOTATION: annotations[HELD_ANNOTATION]} else None


def _is_deeper(value: object, levels: int) -> bool:
    """Whether JSON has more levels of maps and lists."""
    items: list[object] = []
    if isinstance(value, dict):
        items = [*cast("Object", value).values()]
    elif isinstance(value, list):
        items = cast("list[object]", value)
    else:
        return False
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)


def _is_applied(built: Object, live: Object, applied: dict[str, str]) -> bool:
    """Whether the pod template was applied already. Without the annotation, which anyone can remove, it is compared."""
    recorded = _recorded(live)
    return recorded == applied or (not recorded and covers(live["spec"]["template"], built["spec"]["template"]))


def _recorded(live: Object) -> dict[str, str]:
    """The digest of the pod template that was applied, if the live object records one."""
    recorded = nested_map(live, "metadata", "annotations").get(TEMPLATE_ANNOTATION)
    return {} if recorded is None else {TEMPLATE_ANNOTATION: recorded}
