"""A pause of the rollout of slots: a StatefulSet has no field for it, so a changed pod template is not written."""

from typing import Any

import msgspec

from memcached_api.memcached.effective import Ports, ports
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.compare import covers, digest, encoded, fingerprint
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.memcached.desired.pods import memcached_ports
from memcached_operator.workloads import children

PAUSED_ANNOTATION = "memcached-operator.example.com/paused"
"""Annotation of a StatefulSet whose pod template is not changed now."""

OUTDATED, UP_TO_DATE = "outdated", "up-to-date"
"""The values of PAUSED_ANNOTATION: whether the spec has another pod template, which is written after the pause."""

TEMPLATE_ANNOTATION = "memcached-operator.example.com/template"
"""Annotation of a StatefulSet: a digest of the pod template that the operator applied. It shows during a pause whether
the spec asks for another one."""

HELD_ANNOTATION = "memcached-operator.example.com/held-template"
"""Annotation of a StatefulSet whose pod template is kept during a pause: that template as JSON, after its digest. From
it, the template is restored if another client changes it."""

MAX_HELD_LENGTH = 65536
"""Characters of a template that is recorded: Kubernetes accepts 256 KiB of annotations. A longer one is kept as found.
"""


def with_pause(built: Object, spec: MemcachedSpec, live: Object | None) -> Object:
    """The desired StatefulSet. During a pause, it keeps the pod template that `live` had at its start."""
    applied = {TEMPLATE_ANNOTATION: fingerprint(built["spec"]["template"])}
    if not (spec.rollout and spec.rollout.paused):
        return children.with_metadata(built, {}, applied)
    if live is None or _is_applied(built, live, applied):
        return children.with_metadata(built, {}, {**applied, PAUSED_ANNOTATION: UP_TO_DATE})
    template = _held(live) or live["spec"]["template"]
    held = {**built, "spec": {**built["spec"], "template": template}}
    return children.with_metadata(held, {}, {**_recorded(live), **_record(template), PAUSED_ANNOTATION: OUTDATED})


def served_ports(spec: MemcachedSpec, workload: Object | None) -> Ports:
    """The ports of the slots: during a pause, those of the pod template that stays, otherwise those of the spec."""
    if workload is None or nested_map(workload, "metadata", "annotations").get(PAUSED_ANNOTATION) != OUTDATED:
        return ports(spec)
    held = memcached_ports(workload["spec"]["template"]["spec"])
    return held if any(held) else ports(spec)


def _record(template: Object) -> dict[str, str]:
    """The annotation that records a pod template, unless it is too long."""
    content = encoded(template)
    text = f"{digest(content)} {content.decode()}"
    return {HELD_ANNOTATION: text} if len(text) <= MAX_HELD_LENGTH else {}


def _held(live: Object) -> Object | None:
    """The pod template that was recorded during this pause, or None. One that another client changed is ignored."""
    annotations = nested_map(live, "metadata", "annotations")
    if annotations.get(PAUSED_ANNOTATION) != OUTDATED:
        return None
    _, _, text = annotations.get(HELD_ANNOTATION, "").partition(" ")
    try:
        template = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):  # deeply nested JSON: another client can change the annotation
        return None
    return template if _record(template) == {HELD_ANNOTATION: annotations[HELD_ANNOTATION]} else None


def _is_applied(built: Object, live: Object, applied: dict[str, str]) -> bool:
    """Whether the pod template was applied already. Without the annotation, which anyone can remove, it is compared."""
    recorded = _recorded(live)
    return recorded == applied or (not recorded and covers(live["spec"]["template"], built["spec"]["template"]))


def _recorded(live: Object) -> dict[str, str]:
    """The digest of the pod template that was applied, if the live object records one."""
    recorded = nested_map(live, "metadata", "annotations").get(TEMPLATE_ANNOTATION)
    return {} if recorded is None else {TEMPLATE_ANNOTATION: recorded}
