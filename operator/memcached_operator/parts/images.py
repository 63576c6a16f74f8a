"""The images of an object: those of its spec, or those that the operator chose for it when it was created.

And the numbers of objects by their images, for metrics.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from memcached_api.annotations import PINNED_AGENT_ANNOTATION, PINNED_IMAGE_ANNOTATION
from memcached_api.image import is_reference
from memcached_api.images import Images
from memcached_api.shared.agent import Agent
from memcached_api.values import is_object, nested_field
from memcached_operator.kube.resource import Object, nested_list, nested_map


@dataclass(frozen=True)
class Chosen:
    """The images of an object. `pins`: annotations of its workload that keep those that its spec does not name.

    `forged`: the names of those whose live value another client has changed to what is not an image.
    """

    images: Images
    pins: dict[str, str]
    forged: tuple[str, ...] = ()


def chosen(image: str | None, agent: Agent | None, live: Object | None, defaults: Images, *, has_agent: bool) -> Chosen:
    """The images of an object, from the fields `image` and `agent` of its spec.

    `live`: its workload, or None. `defaults`: those of this release. `has_agent`: whether its pods have an agent.
    """
    pins: dict[str, str] = {}
    if not image:
        pins[PINNED_IMAGE_ANNOTATION] = pinned_image(live) or defaults.memcached
    if has_agent and not (agent and agent.image):
        pins[PINNED_AGENT_ANNOTATION] = pinned_image(live, PINNED_AGENT_ANNOTATION) or defaults.agent
    images = Images(
        image or pins[PINNED_IMAGE_ANNOTATION],
        (agent and agent.image) or pins.get(PINNED_AGENT_ANNOTATION, ""),
    )
    recorded = nested_map(live or {}, "metadata", "annotations")
    return Chosen(images, pins, tuple(name for name in pins if not is_reference(recorded.get(name, pins[name]))))


def forged_notices(choice: Chosen, live: Object) -> Iterator[str]:
    """A notice for each annotation of the workload that another client has changed to what is not an image."""
    for name in choice.forged:
        yield (
            f"{live['kind']} {live['metadata']['name']}: another client changed the annotation {name}, which is not an "
            "image; the operator ignores it, and writes its default image"
        )


def live_image(live: Object | None, container: str) -> str:
    """The image of a container in a workload, which a pause keeps; empty without one."""
    containers = nested_list(live or {}, "spec", "template", "spec", "containers")
    return next((each["image"] for each in containers if each["name"] == container), "")


def pinned_image(live: Object | None, annotation: str = PINNED_IMAGE_ANNOTATION) -> str | None:
    """The image that this or an earlier release of the operator chose for an object that names none.

    `live`: its workload, or None. An annotation that is not an image is ignored: another client can change it.
    """
    image = None if live is None else nested_map(live, "metadata", "annotations").get(annotation)
    return image if image is not None and is_reference(image) else None


class ImageCounts(NamedTuple):
    """Numbers of objects, by their images. They are only reported, as metrics."""

    outdated: int = 0
    """With a `spec.image` that is not the default."""
    problems: int = 0
    """With a workload that runs a memcached with known problems."""
    outdated_agents: int = 0
    """With an agent whose `spec.agent.image` is not the default."""


def image_counts(
    obj: Object,
    running: str,
    defaults: Images,
    asks_for_agent: Callable[[Mapping[str, Any]], bool],
    has_problems: Callable[[Mapping[str, Any], str], bool],
) -> ImageCounts:
    """Count one object. `running`: the image in its workload: a pause keeps that, or an annotation pins it.

    `defaults`: the images of this release. `asks_for_agent`: of a spec. `has_problems`: of a spec and that image.
    """
    spec: object = obj.get("spec") or {}
    if not is_object(spec):  # another schema may have admitted it
        return ImageCounts()
    agent = nested_field(spec, "agent", "image")
    return ImageCounts(
        int(spec.get("image", defaults.memcached) != defaults.memcached),
        int(has_problems(spec, running)),
        int(asks_for_agent(spec) and agent not in (None, defaults.agent)),
    )


def total(counts: Iterable[tuple[int, ...]]) -> ImageCounts:
    """The sum of the numbers of all objects. Those of a kind without such numbers are empty."""
    return ImageCounts(*map(sum, zip(*filter(None, counts), strict=True)))
