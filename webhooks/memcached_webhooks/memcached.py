"""What admission does with a Memcached: its defaults, and what a change of it will do."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from memcached_api import quantity
from memcached_api.image import repository
from memcached_api.memcached import DEFAULT_CONTAINER_PORT, DEFAULT_SIZE, MEMCACHED, MemcachedSpec, decode_spec
from memcached_webhooks.admission import Admission, Spec, path_of
from memcached_webhooks.review import Handler
from memcached_webhooks.warnings import about_restart, about_size, about_tag, amounts, cut, readable

MUTATE: Final = path_of("mutate", MEMCACHED)
VALIDATE: Final = path_of("validate", MEMCACHED)

_LOST: Final = ", and what they cache is lost"


def handlers(default_image: str) -> dict[str, Handler]:
    """The function for each path. `default_image`: what an object without `spec.image` is pinned to."""
    image = {"default_image": default_image}
    return Admission(MEMCACHED, partial(defaults, **image), partial(warnings, **image)).handlers()


def defaults(spec: Spec, old: Spec | None, default_image: str) -> dict[str, Any]:
    """Every default the spec lacks; a null counts as lacking.

    The image is pinned once, when the object is created: an update without one keeps the old object's, and where that
    has none (it came in while admission was away) the controller goes on with the image that it chose.
    """
    image = default_image if old is None else old.get("image")
    wanted: dict[str, Any] = {"size": DEFAULT_SIZE, "containerPort": DEFAULT_CONTAINER_PORT}
    if isinstance(image, str):
        wanted["image"] = image
    return {field: value for field, value in wanted.items() if spec.get(field) is None}


def warnings(obj: Any, old: Any, default_image: str) -> list[str]:
    """Sentences about a valid object that is created (`old` is None) or changed."""
    new = decode_spec(obj)
    before = readable(decode_spec, old)
    if before is None:
        return list(about_tag(new.image))
    about_image = _about_pin(new, default_image) if new.image == before.image else about_tag(new.image)
    restart = about_restart(_template(new), _template(before), _LOST)
    return [*about_size(new.size, before.size, _LOST), *restart, *about_image]


def _about_pin(new: MemcachedSpec, default_image: str) -> Iterator[str]:
    """Only for images of the default's own repository: others are the user's choice."""
    if new.image and new.image != default_image and repository(new.image) == repository(default_image):
        yield f"spec.image {cut(new.image)} is kept; this operator's default is {cut(default_image)}"


def _template(spec: MemcachedSpec) -> dict[str, object]:
    """What goes into the pods, in a form in which equal means equal for them."""
    return {
        "spec.containerPort": spec.container_port,
        "spec.image": spec.image,
        "spec.imagePullPolicy": spec.image_pull_policy,
        "spec.imagePullSecrets": spec.image_pull_secrets,
        "spec.resources": amounts(spec.resources),
        "spec.cache.memory": quantity.parse(spec.cache.memory),
    }
