"""The StatefulSet of a Memcached with `identity: Stable`: one slot per pod, with a name that its next pod inherits."""

from typing import Any

import msgspec

from memcached_api.images import Images
from memcached_api.memcached.ports import Ports, ports
from memcached_api.memcached.types import MemcachedSpec
from memcached_operator.kube.resource import Object, nested_map
from memcached_operator.memcached.desired.pods import (
    APP_NAME,
    COMPONENT,
    memcached_ports,
    with_pod_metadata,
    workload_pod,
)
from memcached_operator.memcached.in_place import updatable
from memcached_operator.reconcile.compare import covers, fingerprint
from memcached_operator.workloads import children
from memcached_operator.workloads.statefulset import OUTDATED, PAUSED_ANNOTATION, UP_TO_DATE

TEMPLATE_ANNOTATION = "memcached-operator.example.com/template"
"""Annotation of a StatefulSet: a digest of the pod template that the operator applied. It shows during a pause whether
the spec asks for another one."""

HELD_ANNOTATION = "memcached-operator.example.com/held-template"
"""Annotation of a StatefulSet whose pod template is kept during a pause: that template as JSON, after its digest. From
it, the template is restored if another client changes it."""

MAX_HELD_LENGTH = 65536
"""Characters of a template that is recorded: Kubernetes accepts 256 KiB of annotations. A longer one is kept as found.
"""


def statefulset(cr: Object, spec: MemcachedSpec, images: Images, live: Object | None) -> Object:
    """Build the StatefulSet of `spec.size` pods, which start together and are updated one after the other.

    A StatefulSet has no field for a pause: during one, a changed pod template is not written, and the one that `live`
    had at its start stays.
    """
    pods = workload_pod(cr, spec, images)
    # The DNS names of the slots end with that of the headless Service, which has the object's name.
    built = children.statefulset(cr, APP_NAME, COMPONENT, spec.size, pods, cr["metadata"]["name"])
    built = _with_updates(with_pod_metadata({**built, "spec": {**built["spec"], **_updates(spec)}}, spec), spec)
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


def has_template(desired: Object, live: Object) -> bool:
    """Whether the live StatefulSet has the number of pods and the pod template that are desired.

    Templates are compared by their annotations: a policy of the cluster may change other parts.
    """
    templates = [each["spec"]["template"]["metadata"] for each in (live, desired)]
    return live["spec"].get("replicas") == desired["spec"]["replicas"] and covers(*templates)


def _record(template: Object) -> dict[str, str]:
    """The annotation that records a pod template, unless it is too long."""
    text = f"{fingerprint(template)} {msgspec.json.encode(template, order='deterministic').decode()}"
    return {HELD_ANNOTATION: text} if len(text) <= MAX_HELD_LENGTH else {}


def _held(live: Object) -> Object | None:
    """The pod template that was recorded during this pause, or None. One that another client changed is ignored."""
    found = nested_map(live, "metadata", "annotations")
    if found.get(PAUSED_ANNOTATION) != OUTDATED:
        return None
    _, _, text = found.get(HELD_ANNOTATION, "").partition(" ")
    try:
        template = msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError):
        return None
    return template if _record(template) == {HELD_ANNOTATION: found[HELD_ANNOTATION]} else None


def _is_applied(built: Object, live: Object, applied: dict[str, str]) -> bool:
    """Whether the pod template was applied already. Without the annotation, which anyone can remove, it is compared."""
    recorded = _recorded(live)
    return recorded == applied or (not recorded and covers(live["spec"]["template"], built["spec"]["template"]))


def _recorded(live: Object) -> dict[str, str]:
    """The digest of the pod template that was applied, if the live object records one."""
    found = nested_map(live, "metadata", "annotations").get(TEMPLATE_ANNOTATION)
    return {} if found is None else {TEMPLATE_ANNOTATION: found}


def _with_updates(built: Object, spec: MemcachedSpec) -> Object:
    return {**built, "spec": {**built["spec"], "template": updatable(built["spec"]["template"], spec)}}


def _updates(spec: MemcachedSpec) -> dict[str, Any]:
    """The fields about updates. The operator updates the pods itself: a StatefulSet would replace each of them."""
    return {
        "podManagementPolicy": "Parallel",
        "updateStrategy": {"type": "OnDelete", "rollingUpdate": None},  # see preparation_patch
        "minReadySeconds": (spec.rollout and spec.rollout.min_ready_seconds) or 0,
        "ordinals": {"start": 0},  # with that of another client, all slots would have other names
    }
