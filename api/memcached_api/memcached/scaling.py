"""The part of a Memcached's spec and status about changes of its size, for caches whose clients use proxies."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from memcached_api.effects import KEEPS
from memcached_api.shared.durations import seconds

MAX_DURATION: Final = 7 * 24 * 3600
"""Seconds. memcached's own longest relative TTL is 30 days; a size that changes for longer than a week is a mistake."""

MAX_DURATION_LENGTH: Final = 16


class Warm(msgspec.Struct, frozen=True, rename="camel"):
    """A change of size that loses no item that is written while keys move."""

    duration: Annotated[str, Meta(min_length=1, max_length=MAX_DURATION_LENGTH), KEEPS]
    """How long keys move, such as `30m`, up to `168h`; at least the longest TTL. Items of these keys that are not set
    or added meanwhile are lost. `0s`: only consistent."""


class Scaling(msgspec.Struct, frozen=True, rename="camel"):
    """How a change of `size` takes place."""

    warm: Warm | None = None
    """Proxies move keys in phases, so that no client reads an old value. All clients must use MemcachedProxies.
    """


class ScalingStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The change of size that takes place."""

    from_: Annotated[int, Meta(extra_json_schema={"format": "int32"})] = msgspec.field(name="from", default=0)
    """Slots before."""

    to: Annotated[int, Meta(extra_json_schema={"format": "int32"})] = 0
    """Slots after."""

    phase: str = ""
    """`Wait`, `Prepare`, `Move`, `Finish` or `Plain`."""

    change: Annotated[int, Meta(extra_json_schema={"format": "int64"})] = 0
    """Unix time of its start, which identifies it."""

    since: str = ""
    """Its start."""

    until: str = ""
    """Its end, of `Move`."""

    waiting_for: str = ""
    """What delays it."""


def duration_seconds(warm: Warm) -> int:
    """How long keys move, in seconds."""
    return seconds(warm.duration)
