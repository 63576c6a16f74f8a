"""Admission of Memcached: defaults and warnings."""

from collections.abc import Iterator
from decimal import Decimal
from functools import partial
from typing import Any, Final

from memcached_api.image import repository
from memcached_api.memcached.changes import replaces_pods
from memcached_api.memcached.placing_rules import ZERO
from memcached_api.memcached.types import DEFAULT_CONTAINER_PORT, DEFAULT_SIZE, MEMCACHED, MemcachedSpec, decode_spec
from memcached_api.quantity import parse
from memcached_api.validation.field_errors import truncate
from memcached_webhooks.admission import Admission, Spec, path_of
from memcached_webhooks.patches import field_at
from memcached_webhooks.warnings import MAX_IMAGE_LENGTH, decode_valid, image_warnings, restart_warnings

SPREAD_KEYS: Final = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
"""The node labels over whose values the pods of a new object are distributed."""

MUTATE: Final = path_of("mutate", MEMCACHED)
VALIDATE: Final = path_of("validate", MEMCACHED)


def admission(default_image: str) -> Admission:
    """The admission of Memcached. `default_image`: the image to set in an object without `spec.image`."""
    image = {"default_image": default_image}
    return Admission(MEMCACHED, partial(defaults, **image), partial(warnings, **image))


def defaults(spec: Spec, old: Spec | None, default_image: str) -> dict[str, Any]:
    """Every missing default. A null counts as missing.

    The image is set when the object is created. An update without an image keeps the image of the old object. If the
    old object has none, because the webhook was unavailable on create, the controller keeps the image that it chose.
    """
    wanted: dict[str, Any] = {"size": DEFAULT_SIZE, "containerPort": DEFAULT_CONTAINER_PORT}
    wanted |= {"image": default_image, **placing_defaults()} if old is None else _kept(old)
    if field_at(spec, "rollout/maxSurge") in ZERO:
        wanted.pop("rollout/maxUnavailable", None)  # no pod could be replaced
    return {path: value for path, value in wanted.items() if field_at(spec, path) is None}


def placing_defaults() -> dict[str, Any]:
    """The defaults of a new object that an existing one does not get, because it would lose its cache."""
    return {
        "podTemplate/spec/topologySpreadConstraints": [_spread(key) for key in SPREAD_KEYS],
        "podDisruptionBudget": {"enabled": True, "maxUnavailable": 1},
        "rollout/maxUnavailable": 0,
        "rollout/maxSurge": 1,
    }


def _spread(key: str) -> dict[str, Any]:
    """Pods of one rollout are distributed evenly over the values of a node label, if possible."""
    return {
        "maxSkew": 1,
        "topologyKey": key,
        "whenUnsatisfiable": "ScheduleAnyway",
        "matchLabelKeys": ["pod-template-hash"],
    }


def _kept(old: Spec) -> dict[str, Any]:
    """The fields of the old object that an update without them keeps.

    A file without them, applied with `kubectl replace`, must not replace the pods or delete the budget: they are those
    that a new object gets, with the same values, the image, and the time of a restart.
    """
    found = {path: field_at(old, path) for path in ("image", "rollout/restartedAt")}
    kept = {path: value for path, value in found.items() if isinstance(value, str)}
    return kept | {path: value for path, value in placing_defaults().items() if field_at(old, path) == value}


def warnings(obj: Any, old: Any, default_image: str) -> list[str]:
    """Warnings about a valid object that is created (`old` is None) or changed."""
    new = decode_spec(obj)
    before = decode_valid(decode_spec, old)
    threads = _thread_warnings(new, before)
    if before is None:
        return [*threads, *image_warnings(new.image)]
    image = _outdated_image_warnings(new, default_image) if new.image == before.image else image_warnings(new.image)
    pods = min(new.size, before.size)
    restart = restart_warnings(replaces_pods(new, before), pods, "cached items")
    return [*_size_warnings(new.size, before.size), *restart, *threads, *image]


def _outdated_image_warnings(new: MemcachedSpec, default_image: str) -> Iterator[str]:
    """A warning if the image is not the default, but from the same repository."""
    if new.image and new.image != default_image and repository(new.image) == repository(default_image):
        kept, default = (truncate(image, MAX_IMAGE_LENGTH) for image in (new.image, default_image))
        yield f"spec.image {kept} is kept; this operator's default is {default}"


def _size_warnings(new: int, old: int) -> Iterator[str]:
    """A warning about the keys that move. With consistent hashing, these are the keys of the new or deleted pods."""
    if new != old:
        share = max(1, round(abs(new - old) / max(new, old) * 100))
        lost = "; the cached items of the deleted pods are lost" if new < old else ""
        yield f"{old} → {new} pods: with consistent hashing about {share} % of the keys move{lost}"


def _thread_warnings(new: MemcachedSpec, old: MemcachedSpec | None) -> Iterator[str]:
    """A warning if threads are set above twice the CPU limit, unless both are as before."""
    limit = _cpu_limit(new)
    if new.cache.threads is None or limit is None or new.cache.threads <= 2 * limit:
        return
    if old is None or (old.cache.threads, _cpu_limit(old)) != (new.cache.threads, limit):
        yield (
            f"spec.cache.threads of {new.cache.threads} is more than twice the CPU limit: threads that wait for a CPU "
            "make memcached slower"
        )


def _cpu_limit(spec: MemcachedSpec) -> Decimal | None:
    given = spec.resources.limits.get("cpu") if spec.resources else None
    return None if given is None else parse(given)
