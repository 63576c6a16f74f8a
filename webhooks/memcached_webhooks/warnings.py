"""What an accepted change will do, told to whoever makes it. Kubernetes shows warnings, it never acts on them."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from memcached_api import quantity
from memcached_api.field_errors import InvalidSpec
from memcached_api.image import is_fixed
from memcached_api.kubernetes import ResourceRequirements

Spec = TypeVar("Spec")


def readable(decode: Callable[[Any], Spec], old: Any) -> Spec | None:
    """The old object's spec; None for no object, and for one that came in under other rules and cannot be compared."""
    try:
        return decode(old) if old is not None else None
    except InvalidSpec:
        return None


def about_tag(image: str | None) -> Iterator[str]:
    """An image that may be another one tomorrow."""
    if image and not is_fixed(image):
        yield f"spec.image {cut(image)} names no fixed version: pods started later may run another one"


def about_size(new: int, old: int, lost: str = "") -> Iterator[str]:
    """Fewer pods than before; `lost` goes on with what that means."""
    if new < old:
        gone = old - new
        yield f"{gone} of {old} pods {'goes' if gone == 1 else 'go'}{lost}"


def about_restart(new: Mapping[str, object], old: Mapping[str, object], lost: str = "") -> Iterator[str]:
    """Fields that go into the pods and have changed, by path; `lost` goes on with what that means."""
    changed = [field for field, value in new.items() if value != old[field]]
    if changed:
        yield f"{', '.join(changed)}: this change replaces every pod, some at a time{lost}"


def amounts(resources: ResourceRequirements | None) -> list[dict[str, object]]:
    """Limits and requests as numbers: equal where they are equal for a container."""
    given = resources or ResourceRequirements()
    return [
        {name: quantity.parse(quantity.canonical_resource(amount)) for name, amount in part.items()}
        for part in (given.limits, given.requests)
    ]


def cut(text: str) -> str:
    """Kubernetes asks for warnings of at most 120 characters, and cuts longer ones when many come together."""
    return text if len(text) <= 80 else f"{text[:79]}…"
