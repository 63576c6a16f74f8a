"""Admission warnings about the effects of an allowed change."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

from memcached_api.image import has_fixed_version, repository
from memcached_api.shared.durations import seconds
from memcached_api.shared.monitoring import Monitoring
from memcached_api.validation.field_errors import FieldError, SpecDecodeError, truncate

Spec = TypeVar("Spec")

MAX_IMAGE_LENGTH = 79
"""Characters of an image in a warning: Kubernetes recommends warnings of at most 120 characters."""
ONE, FEW = "one at a time", "a few at a time"
"""The number of pods that are changed at once. By Kubernetes' own default, a Deployment replaces a quarter."""
MAX_KEPT_LENGTH = 250
"""Characters of a warning about a kept error, which includes the remedy. The API server may truncate those of 256."""

MAX_INTERVAL: Final = 120
"""Seconds between two scrapes. Prometheus drops a sample after 300 s, and may leave out a scrape."""


def decode_valid(decode: Callable[[Any], Spec], old: Any) -> Spec | None:
    """The old object's spec; None if there is no old object, or if it was stored under other rules and is not valid."""
    try:
        return decode(old) if old is not None else None
    except SpecDecodeError:
        return None


def image_warnings(image: str | None, field: str = "spec.image") -> Iterator[str]:
    """A warning if the image reference has no fixed version."""
    if image and not has_fixed_version(image):
        yield f"{field} {truncate(image, MAX_IMAGE_LENGTH)} has no fixed version; new pods may run a different one"


def outdated_warnings(field: str, image: str | None, default_image: str) -> Iterator[str]:
    """A warning if an image that is kept is another one than the default of the same repository."""
    if image and image != default_image and repository(image) == repository(default_image):
        kept, default = (truncate(reference, MAX_IMAGE_LENGTH) for reference in (image, default_image))
        yield f"{field} {kept} is kept; this operator's default is {default}"


def interval_warnings(new: Monitoring | None, old: Monitoring | None) -> Iterator[str]:
    """A warning if scrapes are so slow that alerts can fail, unless the interval is as before."""
    interval, before = (spec and spec.pod_monitor and spec.pod_monitor.interval for spec in (new, old))
    if interval and interval != before and seconds(interval) > MAX_INTERVAL:
        yield (
            f"spec.monitoring.podMonitor.interval of {interval} is more than 2m: Prometheus drops a sample after 5m, "
            "so alerts may not fire"
        )


def restart_warnings(fields: Sequence[str], pods: int, lost: str = "", pace: str = FEW) -> Iterator[str]:
    """A warning if fields change that replace the pods. `pods`: their number. `lost`: what they lose."""
    if fields:
        replaced, possessive = ("1 pod", "its") if pods == 1 else (f"{pods} pods, {pace}", "their")
        yield f"{names(fields)}: this change replaces {replaced}{f'; {possessive} {lost} are lost' if lost else ''}"


def in_place_warnings(
    fields: Sequence[str],
    pods: int,
    effect_text: tuple[str, str],
    pace: str,
    lost: str,
    *,
    resizes: bool,
) -> Iterator[str]:
    """A warning about fields whose change keeps the pods.

    `pods`: their number. `effect_text`: the words about the change, before and after the number. `lost`: the effect
    on their items. `resizes`: whether the cluster must be able to resize pods.
    """
    number = "1 pod" if pods == 1 else f"{pods} pods"
    verb, place = effect_text
    paced = f"{verb} {number}{place}{'' if pods == 1 else f', {pace}'}"
    yield f"{names(fields)}: this change {paced}; {lost}{_without_resize(pods) if resizes else ''}"


def _without_resize(pods: int) -> str:
    pronoun, possessive = ("it", "its") if pods == 1 else ("them", "their")
    return f". A cluster that cannot resize pods replaces {pronoun}, and {possessive} cached items are lost"


def names(fields: Sequence[str]) -> str:
    """The paths of changed fields: the first one and the number of others if there are more than two."""
    return ", ".join(fields) if len(fields) <= 2 else f"{fields[0]} and {len(fields) - 1} more fields"


def kept_warning(error: FieldError) -> str:
    """A warning about an error that the old object has too."""
    return truncate(f"{error.field_text} is kept, but {error.message}", MAX_KEPT_LENGTH)
