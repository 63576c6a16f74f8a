"""The writes of an update."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from memcached_api.annotations import ORIGIN_ANNOTATION
from memcached_api.memcached.changes.resizing import Amounts
from memcached_operator.engine.kind import PodStep
from memcached_operator.engine.reporting.conditions import timestamp
from memcached_operator.kube.resource import Object
from memcached_operator.memcached.updates.amounts import names_of, spec_amounts
from memcached_operator.memcached.updates.confirmation import Confirmation, has_restarted, revision_of
from memcached_operator.memcached.updates.origin import origin_in, text_of
from memcached_operator.memcached.updates.record import Before, Ran, UpdateRecord, annotation, ends
from memcached_operator.memcached.updates.target import REVISION_LABEL
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


def delete(facts: Confirmation) -> PodStep:
    """Delete the pod: its StatefulSet creates it again."""
    return PodStep(facts.pod)


def record(facts: Confirmation, content: UpdateRecord | None) -> PodStep:
    """Write the record of the pod; None removes the record."""
    return PodStep(facts.pod, {"metadata": {"annotations": annotation(content)}})


def annotate(facts: Confirmation) -> PodStep:
    """Restore the annotations that another client has changed."""
    return PodStep(facts.pod, {"metadata": {"annotations": facts.other_annotations}})


def resize(facts: Confirmation, amounts: Mapping[str, Amounts]) -> PodStep:
    """Change requests and limits of containers."""
    current, replacing = spec_amounts(facts.pod), facts.target.rules.replacing
    adds = any(names_of(each) - names_of(current.get(name, {})) for name, each in amounts.items())
    return PodStep(
        facts.pod,
        _containers(facts.pod, "resources", amounts),
        "resize",
        remedy=replacing,
        denied_remedy=DENIED_ADDED if adds else DENIED_REMEDY,
        capacity_remedy=f"{CAPACITY_REMEDY}. {replacing}",
    )


class Change(NamedTuple):
    """A step that changes images and annotations. `keeps_memcached`: the first container is not touched."""

    step: PodStep
    keeps_memcached: bool


def change(facts: Confirmation, *, lowers: bool) -> Change:
    """Change images and annotations, and label the pod with the new revision. `lowers`: limits are lowered later."""
    pod, target, previous = facts.pod, facts.target, facts.current
    images = {name: image for name, image in target.origin.images.items() if facts.origin.images.get(name) != image}
    changed, old = facts.other_annotations, target.annotations(pod.metadata.annotations)
    arguments = {target.containers[0]} if target.rules.arguments in changed else set[str]()
    undone = _undone(facts)
    # Those of an earlier update that are not confirmed, without those that are undone.
    pending = (name for name in previous.restarts if name not in undone and facts.confirmed_in(name) is not None)
    restarts = {name: previous.restarts[name] for name in pending}
    for name in sorted({*images, *arguments} - undone):
        restarts[name] = _ran(pod, name, restarts.get(name), image=name in images, args=name in arguments)
    before = _before(pod, images, {name: old[name] for name in changed}, previous) if restarts else None
    content, ended = None, ends(pod, previous)
    if restarts or lowers or ended:
        since, given, added = timestamp(facts.now), previous.amounts, previous.added
        content = UpdateRecord(target.revision, since, restarts, before, given, lowers, ended=ended, added=added)
    keeps = not (images.keys() | arguments) & {target.containers[0]} and not lowers
    return Change(PodStep(pod, _patch(pod, target.revision, images, changed | annotation(content))), keeps)


def restore(facts: Confirmation) -> PodStep | None:
    """Restore the state of the pod before its update, an image of which is not available."""
    pod, target, update, before = facts.pod, facts.target, facts.record, facts.record.before
    if before is None:
        return None
    annotations = {name: text for name, text in before.annotations.items() if name in target.changeable}
    restarts = {name: _ran(pod, name, update.restarts.get(name), image=True) for name in before.images}
    first, ended = target.containers[0], ends(pod, update)
    if target.rules.arguments in annotations and first not in restarts:
        ran = _ran(pod, first, None, image=False, args=True)
        if has_restarted(pod, first, update):
            restarts[first] = ran
        else:  # the agent may have signalled it
            ended[first] = ran.id
    failed, since = facts.image_failure, timestamp(facts.now)
    content = msgspec.structs.replace(update, since=since, restarts=restarts, before=None, failed=failed, ended=ended)
    return PodStep(pod, _patch(pod, before.revision, before.images, annotations | annotation(content)))


def _ran(pod: Pod, container: str, pending: Ran | None, *, image: bool, args: bool = False) -> Ran:
    """The state of a container before its restart. `pending`: an earlier restart, which is not confirmed.

    Then another image than the present one can be that of the earlier change, so the image proves nothing.
    """
    status = pod.container_status(container)
    image_id = status.image_id if image and not pending else ""
    return Ran(status.container_id, image_id, args or (pending is not None and pending.args))


def _undone(facts: Confirmation) -> set[str]:
    """The containers that do not restart, because the target undoes an update before it has begun.

    So the target has the image and the arguments that they had before the update.
    """
    before, arguments = facts.current.before, facts.target.rules.arguments
    desired = facts.target.desired[arguments]
    if before is None or before.annotations.get(arguments, desired) != desired:
        return set()
    images = facts.target.origin.images
    same = (name for name in facts.current.restarts if before.images.get(name, images.get(name)) == images.get(name))
    return {name for name in same if not has_restarted(facts.pod, name, facts.current)}


def _before(
    pod: Pod, changed: Mapping[str, str], annotations: Mapping[str, str | None], previous: UpdateRecord
) -> Before:
    """The state to restore. If the previous image may be missing too, it is the state before that.

    `changed`: the new images. The image of a container that was never created is not restored: it may be what is wrong.
    """
    # From the pod, not from the template: an admission webhook may have changed the images of the pod.
    containers = (container for container in pod.spec.containers if container.name in changed)
    images = {each.name: each.image for each in containers if pod.container_status(each.name).container_id}
    before = Before(revision_of(pod), images, dict(annotations))
    earlier = previous.before
    if earlier is not None and not all(has_restarted(pod, name, previous) for name in previous.restarts):
        before = Before(earlier.revision, images | earlier.images, {**annotations, **earlier.annotations})
    return _keeping(before, {name: image for name, image in changed.items() if name not in before.images})


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
