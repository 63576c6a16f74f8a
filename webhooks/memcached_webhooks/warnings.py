"""Admission warnings about the effects of an allowed change."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from memcached_api import quantity
from memcached_api.image import has_fixed_version
from memcached_api.kubernetes import ResourceRequirements
from memcached_api.validation.field_errors import SpecDecodeError

Spec = TypeVar("Spec")


def decode_valid(decode: Callable[[Any], Spec], old: Any) -> Spec | None:
    """The old object's spec; None if there is no old object, or if it was stored under other rules and is not valid."""
    try:
        return decode(old) if old is not None else None
    except SpecDecodeError:
        return None


def image_warnings(image: str | None) -> Iterator[str]:
    """A warning if the image reference has no fixed version."""
    if image and not has_fixed_version(image):
        yield f"spec.image {truncate(image)} has no fixed version; new pods may run a different one"


def size_warnings(new: int, old: int, consequence: str = "") -> Iterator[str]:
    """A warning if the number of pods decreases. `consequence` is appended."""
    if new < old:
        yield f"{old - new} of {old} pods will be deleted{consequence}"


def restart_warnings(new: Mapping[str, object], old: Mapping[str, object], consequence: str = "") -> Iterator[str]:
    """A warning if fields of the pod template change. `consequence` is appended."""
    changed = [field for field, value in new.items() if value != old[field]]
    if changed:
        yield f"{', '.join(changed)}: this change replaces all pods in a rolling update{consequence}"


def comparable_resources(resources: ResourceRequirements | None) -> list[dict[str, object]]:
    """Limits and requests as numbers, normalized for comparison."""
    given = resources or ResourceRequirements()
    return [
        {name: quantity.parse(quantity.canonical_resource(amount)) for name, amount in part.items()}
        for part in (given.limits, given.requests)
    ]


def truncate(text: str) -> str:
    """The text, truncated to 80 characters: Kubernetes recommends warnings of at most 120 characters."""
    return text if len(text) <= 80 else f"{text[:79]}…"
