"""The writes of an update."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from memcached_api.annotations import ORIGIN_ANNOTATION
from memcached_api.memcached.changes.resizing import Amounts
from memcached_operator.engine.kind import PodStep
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.amounts import names_of, spec_amounts
from memcached_operator.memcached.updates.confirmation import has_restarted, seconds_until_confirmed
from memcached_operator.memcached.updates.observed import revision_of
from memcached_operator.memcached.updates.origin import Origin, origin_in, text_of
from memcached_operator.memcached.updates.record import Before, Ran, UpdateRecord, annotation, ends
from memcached_operator.memcached.updates.target import REVISION_LABEL, Target
from memcached_operator.world.pod import Pod

UNDO: Final = "Set the previous values again"
UNDO_ADDED: Final = (
    "To replace the pods that have the added amounts and lose their items, set the previous values again"
)
"""The remedies that undo a resize, if it changes amounts, and if it adds some: Kubernetes cannot remove one."""
DENIED_REMEDY: Final = f"{UNDO}, or correct what rejects them: it can reject new pods too"
DENIED_ADDED: Final = f"Correct what rejects the new values: it can reject new pods too. {UNDO_ADDED}"
"""The remedies if a quota, a LimitRange or a policy denies a resize. A deleted pod might not be created again."""
CAPACITY_REMEDY: Final = "Request less. New pods need a larger node"
"""The remedy if the node of a pod cannot have the amounts, before that to replace the pods."""


def delete(pod: Pod) -> PodStep:
    """Delete the pod: its StatefulSet creates it again."""
    return PodStep(pod)


def record(pod: Pod, content: UpdateRecord | None) -> PodStep:
    """Write the record of a pod; None removes it."""
    return PodStep(pod, {"metadata": {"annotations": annotation(content)}})


def resize(pod: Pod, amounts: Mapping[str, Amounts], target: Target) -> PodStep:
    """Change requests and limits of containers."""
    current, replacing = spec_amounts(pod), target.rules.replacing
    adds = any(names_of(each) - names_of(current.get(name, {})) for name, each in amounts.items())
    return PodStep(
        pod,
        _containers(pod, "resources", amounts),
        "resize",
        remedy=replacing,
        denied_remedy=DENIED_ADDED if adds else DENIED_REMEDY,
        capacity_remedy=f"{CAPACITY_REMEDY}. {replacing}",
    )


class Change(NamedTuple):
    """A step that changes images and annotations. `keeps_memcached_running`: the first container is not touched."""

    step: PodStep
    keeps_memcached_running: bool


def change(pod: Pod, target: Target, origin: Origin, previous: UpdateRecord, now: datetime, *, lowers: bool) -> Change:
    """Change images and annotations, and label the pod with the new revision.

    `previous`: the record of the pod, which can be empty. `lowers`: limits become lower afterwards.
    """
    images = {name: image for name, image in target.origin.images.items() if origin.images.get(name) != image}
    changed, old = target.changed_annotations(pod), target.annotations(pod.metadata.annotations)
    arguments = {target.containers[0]} if target.rules.arguments in changed else set[str]()
    undone = _undone(pod, target, previous)
    restarts = _pending(pod, previous, undone, now)
    for name in sorted({*images, *arguments} - undone):
        restarts[name] = _ran(pod, name, restarts.get(name), image=name in images, args=name in arguments)
    before = _before(pod, images, {name: old[name] for name in changed}, previous) if restarts else None
    content = None
    ended = ends(pod, previous)
    if restarts or lowers or ended:
        content = UpdateRecord(
            target.revision,
            timestamp(now),
            restarts,
            before,
            previous.amounts,
            lowers=lowers,
            ended=ended,
            added=previous.added,
        )
    keeps = not (images.keys() | arguments) & {target.containers[0]} and not lowers
    return Change(PodStep(pod, _patch(pod, target.revision, images, changed | annotation(content))), keeps)


def annotate(pod: Pod, target: Target) -> PodStep | None:
    """Restore the annotations that another client has changed; None if they are those of the template."""
    changed = target.changed_annotations(pod)
    return PodStep(pod, {"metadata": {"annotations": changed}}) if changed else None


def restore(pod: Pod, target: Target, update: UpdateRecord, before: Before, message: str, now: datetime) -> PodStep:
    """Restore the state of the pod before `update`, an image of which is not available."""
    annotations = {name: text for name, text in before.annotations.items() if name in target.changeable}
    restarts = {name: _ran(pod, name, update.restarts.get(name), image=True) for name in before.images}
    first, ended = target.containers[0], ends(pod, update)
    if target.rules.arguments in annotations and first not in restarts:
        ran = _ran(pod, first, None, image=False, args=True)
        if has_restarted(pod, first, update):
            restarts[first] = ran
        else:  # the agent may have signalled it
            ended[first] = ran.id
    content = msgspec.structs.replace(
        update, since=timestamp(now), restarts=restarts, before=None, failed=message, ended=ended
    )
    return PodStep(pod, _patch(pod, before.revision, before.images, annotations | annotation(content)))


def _ran(pod: Pod, container: str, pending: Ran | None, *, image: bool, args: bool = False) -> Ran:
    """The state of a container before its restart. `pending`: an earlier restart, which is not confirmed.

    Then another image than the present one can be that of the earlier change, so the image proves nothing.
    """
    status = pod.container_status(container)
    image_id = status.image_id if image and not pending else ""
    return Ran(status.container_id, image_id, args or (pending is not None and pending.args))


def _pending(pod: Pod, previous: UpdateRecord, undone: set[str], now: datetime) -> dict[str, Ran]:
    """The restarts of an earlier update that are not confirmed, without those that are undone."""
    return {
        name: ran
        for name, ran in previous.restarts.items()
        if name not in undone and seconds_until_confirmed(pod, name, ran, previous, now) is not None
    }


def _undone(pod: Pod, target: Target, previous: UpdateRecord) -> set[str]:
    """The containers that do not restart, because the target undoes an update before it has begun."""
    return {
        name for name in previous.restarts if not has_restarted(pod, name, previous) and _undoes(target, previous, name)
    }


def _undoes(target: Target, previous: UpdateRecord, container: str) -> bool:
    """Whether the target has the image and the arguments that a container had before an update."""
    before = previous.before
    if before is None:
        return False
    arguments, desired = target.rules.arguments, target.desired
    image = target.origin.images.get(container)
    return (
        before.images.get(container, image) == image
        and before.annotations.get(arguments, desired[arguments]) == desired[arguments]
    )


def _before(
    pod: Pod, changed: Mapping[str, str], annotations: Mapping[str, str | None], previous: UpdateRecord
) -> Before:
    """The state to restore. If the previous image may be missing too, it is the state before that.

    `changed`: the new images. The image of a container that was never created is not restored: it may be what is wrong.
    """
    # From the pod, not from the template: an admission webhook may have changed the images of the pod.
    containers = (container for container in pod.spec.containers if container.name in changed)
    images = {container.name: container.image for container in containers if _was_created(pod, container.name)}
    before = Before(revision_of(pod), images, dict(annotations))
    earlier = previous.before
    if earlier is not None and not all(has_restarted(pod, name, previous) for name in previous.restarts):
        before = Before(earlier.revision, images | earlier.images, {**annotations, **earlier.annotations})
    return _keeping(before, {name: image for name, image in changed.items() if name not in before.images})


def _was_created(pod: Pod, container: str) -> bool:
    return bool(pod.container_status(container).container_id)


def _keeping(before: Before, images: Mapping[str, str]) -> Before:
    """The state to restore, with an origin that names the images that are not restored."""
    origin = origin_in(before.annotations.get(ORIGIN_ANNOTATION))
    if origin is None or not images:
        return before
    kept = msgspec.structs.replace(origin, images=origin.images | dict(images))
    return msgspec.structs.replace(before, annotations={**before.annotations, ORIGIN_ANNOTATION: text_of(kept)})


def _patch(pod: Pod, revision: str, images: Mapping[str, str], annotations: Mapping[str, str | None]) -> Object:
    metadata = {"labels": {REVISION_LABEL: revision}, "annotations": dict(annotations)}
    return {"metadata": metadata} | (_containers(pod, "image", images) if images else {})


def _containers(pod: Pod, field: str, values: Mapping[str, Any]) -> Object:
    """A patch of one field of some containers, in the order of the pod.

    A strategic merge patch also sets the order of the items that it lists, and the API server rejects a new order.
    """
    places = {container.name: place for place, container in enumerate(pod.spec.containers)}
    names = sorted(values, key=lambda name: places.get(name, len(places)))
    return {"spec": {"containers": [{"name": name, field: values[name]} for name in names]}}
