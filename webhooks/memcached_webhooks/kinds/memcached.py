"""Admission of Memcached: defaults and warnings."""

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from memcached_api import quantity
from memcached_api.image import repository
from memcached_api.memcached.types import DEFAULT_CONTAINER_PORT, DEFAULT_SIZE, MEMCACHED, MemcachedSpec, decode_spec
from memcached_webhooks.admission import Admission, Spec, path_of
from memcached_webhooks.warnings import (
    comparable_resources,
    decode_valid,
    image_warnings,
    restart_warnings,
    size_warnings,
    truncate,
)

MUTATE: Final = path_of("mutate", MEMCACHED)
VALIDATE: Final = path_of("validate", MEMCACHED)

_DATA_LOSS: Final = "; the cached data of these pods is lost"


def admission(default_image: str) -> Admission:
    """The admission of Memcached. `default_image`: the image to set in an object without `spec.image`."""
    image = {"default_image": default_image}
    return Admission(MEMCACHED, partial(defaults, **image), partial(warnings, **image))


def defaults(spec: Spec, old: Spec | None, default_image: str) -> dict[str, Any]:
    """Every missing default. A null counts as missing.

    The image is set when the object is created. An update without an image keeps the image of the old object. If the
    old object has none, because the webhook was unavailable on create, the controller keeps the image that it chose.
    """
    image = default_image if old is None else old.get("image")
    wanted: dict[str, Any] = {"size": DEFAULT_SIZE, "containerPort": DEFAULT_CONTAINER_PORT}
    if isinstance(image, str):
        wanted["image"] = image
    return {field: value for field, value in wanted.items() if spec.get(field) is None}


def warnings(obj: Any, old: Any, default_image: str) -> list[str]:
    """Warnings about a valid object that is created (`old` is None) or changed."""
    new = decode_spec(obj)
    before = decode_valid(decode_spec, old)
    if before is None:
        return list(image_warnings(new.image))
    image = _outdated_image_warnings(new, default_image) if new.image == before.image else image_warnings(new.image)
    restart = restart_warnings(_template(new), _template(before), _DATA_LOSS)
    return [*size_warnings(new.size, before.size, _DATA_LOSS), *restart, *image]


def _outdated_image_warnings(new: MemcachedSpec, default_image: str) -> Iterator[str]:
    """A warning if the image is not the default, but from the same repository."""
    if new.image and new.image != default_image and repository(new.image) == repository(default_image):
        yield f"spec.image {truncate(new.image)} is kept; this operator's default is {truncate(default_image)}"


def _template(spec: MemcachedSpec) -> dict[str, object]:
    """The fields that affect the pod template, normalized for comparison."""
    return {
        "spec.containerPort": spec.container_port,
        "spec.image": spec.image,
        "spec.imagePullPolicy": spec.image_pull_policy,
        "spec.imagePullSecrets": spec.image_pull_secrets,
        "spec.resources": comparable_resources(spec.resources),
        "spec.cache.memory": quantity.parse(spec.cache.memory),
    }
