"""The writes of an update."""

from collections.abc import Iterable, Mapping
from typing import Any

from memcached_api.resizing import Amounts
from memcached_operator.kind import PodStep
from memcached_operator.kube.resource import Object
from memcached_operator.workloads.updates.observed import (
    has_restarted,
    ready_since,
    restarts,
    revision_of,
)
from memcached_operator.workloads.updates.origin import ORIGIN_ANNOTATION, Origin
from memcached_operator.workloads.updates.record import Before, Record, annotation
from memcached_operator.workloads.updates.target import REVISION_LABEL, AnnotationEffect, Target


def delete(pod: Object) -> PodStep:
    """Delete the pod: its StatefulSet creates it again."""
    return PodStep(pod)


def record(pod: Object, content: Record | None) -> PodStep:
    """Write the record of a pod; None removes it."""
    return PodStep(pod, {"metadata": {"annotations": annotation(content)}})


def resize(pod: Object, amounts: Mapping[str, Amounts], remedy: str) -> PodStep:
    """Change requests and limits of containers."""
    containers = [{"name": name, "resources": found} for name, found in amounts.items()]
    return PodStep(pod, {"spec": {"containers": containers}}, "resize", f"To replace the pods, {remedy}")


def change(
    pod: Object, target: Target, origin: Origin, previous: Record | None, *, lowers: bool
) -> tuple[PodStep, bool]:
    """Change images and annotations, and label the pod with the new revision.

    `previous`: the record of the pod. `lowers`: limits become lower afterwards. Returns also whether the
    first container is not touched.
    """
    images = {name: image for name, image in target.origin.images.items() if origin.images.get(name) != image}
    changed, old = target.changed_annotations(pod), target.annotations(pod)
    effects = {target.rules.annotations[name] for name in changed if name != ORIGIN_ANNOTATION}
    restarting = {*images, *([target.containers[0]] if AnnotationEffect.RESTART in effects else [])}
    content = Record(
        target.revision,
        restarts={
            **(previous.restarts if previous else {}),
            **{name: restarts(pod, name) for name in sorted(restarting)},
        },
        ready_since=ready_since(pod) if AnnotationEffect.READY in effects else None,
        before=_before(pod, images, {name: old[name] for name in changed}, previous) if images else None,
        lowers=lowers,
    )
    is_free = target.containers[0] not in restarting and not lowers
    return PodStep(pod, _patch(target.revision, images, changed | annotation(content))), is_free


def annotate(pod: Object, target: Target) -> PodStep | None:
    """Restore the annotations that another client has changed; None if they are those of the template."""
    changed = target.changed_annotations(pod)
    return PodStep(pod, {"metadata": {"annotations": changed}}) if changed else None


def restore(pod: Object, revision: str, before: Before, message: str) -> PodStep:
    """Restore what the pod had before an image of this revision, which is not available."""
    again = {name: restarts(pod, name) for name in before.images}
    content = Record(revision, restarts=again, resized=True, failed=message)  # its resources may have been raised
    return PodStep(pod, _patch(before.revision, before.images, before.annotations | annotation(content)))


def _before(
    pod: Object, changed: Iterable[str], annotations: Mapping[str, str | None], previous: Record | None
) -> Before:
    """What to restore. If the previous image may be missing too, it is what was there before that."""
    # Those of the pod: admission of the cluster may have changed those of the template.
    images = {each["name"]: each["image"] for each in pod["spec"]["containers"] if each["name"] in changed}
    earlier = previous.before if previous else None
    if previous is None or earlier is None or all(has_restarted(pod, name, previous) for name in earlier.images):
        return Before(revision_of(pod), images, dict(annotations))
    return Before(earlier.revision, images | earlier.images, {**annotations, **earlier.annotations})


def _patch(revision: str, images: Mapping[str, str], annotations: Mapping[str, str | None]) -> Object:
    metadata = {"labels": {REVISION_LABEL: revision}, "annotations": dict(annotations)}
    spec: dict[str, Any] = {"containers": [{"name": name, "image": image} for name, image in images.items()]}
    return {"metadata": metadata} | ({"spec": spec} if images else {})
