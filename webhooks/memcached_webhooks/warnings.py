"""What an accepted change will do, told to whoever makes it. Kubernetes shows warnings, it never acts on them."""

from collections.abc import Iterator
from typing import Any

from memcached_api import quantity
from memcached_api.faults import InvalidSpec
from memcached_api.image import is_fixed, repository
from memcached_api.kubernetes import ResourceRequirements
from memcached_api.memcached import MemcachedSpec, decode_spec


def warnings(obj: Any, old: Any, default_image: str) -> list[str]:
    """Sentences about a valid object that is created (`old` is None) or changed."""
    new = decode_spec(obj)
    before = _readable(old)
    if before is None:
        return list(_about_tag(new))
    about_image = _about_pin(new, default_image) if new.image == before.image else _about_tag(new)
    return [*_about_size(new, before), *_about_restart(new, before), *about_image]


def _readable(old: Any) -> MemcachedSpec | None:
    """None for an old object that came in under other rules and cannot be compared with."""
    try:
        return decode_spec(old) if old is not None else None
    except InvalidSpec:
        return None


def _about_tag(new: MemcachedSpec) -> Iterator[str]:
    if new.image and not is_fixed(new.image):
        yield f"spec.image {_cut(new.image)} names no fixed version: pods started later may run another one"


def _about_pin(new: MemcachedSpec, default_image: str) -> Iterator[str]:
    """Only for images of the default's own repository: others are the user's choice."""
    if new.image and new.image != default_image and repository(new.image) == repository(default_image):
        yield f"spec.image {_cut(new.image)} is kept; this operator's default is {_cut(default_image)}"


def _about_size(new: MemcachedSpec, old: MemcachedSpec) -> Iterator[str]:
    if new.size < old.size:
        gone = old.size - new.size
        yield f"{gone} of {old.size} pods {'goes' if gone == 1 else 'go'}, and what they cache is lost"


def _about_restart(new: MemcachedSpec, old: MemcachedSpec) -> Iterator[str]:
    before = _template(old)
    changed = [field for field, value in _template(new).items() if value != before[field]]
    if changed:
        yield f"{', '.join(changed)}: this change replaces every pod, some at a time, and what they cache is lost"


def _template(spec: MemcachedSpec) -> dict[str, object]:
    """What goes into the pods, in a form in which equal means equal for them."""
    return {
        "spec.containerPort": spec.container_port,
        "spec.image": spec.image,
        "spec.imagePullPolicy": spec.image_pull_policy,
        "spec.imagePullSecrets": spec.image_pull_secrets,
        "spec.resources": _amounts(spec.resources or ResourceRequirements()),
        "spec.cache.memory": quantity.parse(spec.cache.memory),
    }


def _amounts(resources: ResourceRequirements) -> list[dict[str, object]]:
    return [
        {name: quantity.parse(quantity.canonical_resource(amount)) for name, amount in amounts.items()}
        for amounts in (resources.limits, resources.requests)
    ]


def _cut(text: str) -> str:
    """Kubernetes asks for warnings of at most 120 characters, and cuts longer ones when many come together."""
    return text if len(text) <= 80 else f"{text[:79]}…"
