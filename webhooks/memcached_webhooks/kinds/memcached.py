"""Admission of Memcached: defaults and warnings."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Final

from memcached_api.effects import Effect
from memcached_api.image import is_older
from memcached_api.images import Images
from memcached_api.known_problems import known_problems, sentence
from memcached_api.memcached import memory
from memcached_api.memcached.agent import asks_for_agent
from memcached_api.memcached.changes.effect import ChangeEffect, effect_of
from memcached_api.memcached.extstore import age_seconds, file_mebibytes
from memcached_api.memcached.placing import RolloutSpec
from memcached_api.memcached.resolved import Resolved, requested_slots, resolved, slots_at_once
from memcached_api.memcached.rules.spec import STABLE
from memcached_api.memcached.scaling import Warm, duration_seconds
from memcached_api.memcached.types import (
    DEFAULT_CONTAINER_PORT,
    DEFAULT_SIZE,
    MEMCACHED,
    MemcachedSpec,
    decode_spec,
    is_stable,
    needs_agent,
    restarts_warm,
    warm_scaling_of,
    warm_up_of,
)
from memcached_api.shared.resources import cpu_limit
from memcached_api.shared.rules.placing import ZERO
from memcached_webhooks import defaults as shared
from memcached_webhooks.admission import Admission
from memcached_webhooks.defaults import (
    AGENT_IMAGE,
    BUDGET,
    IMAGE,
    OTHER_VALUE,
    SPREAD,
    agent_default,
    missing,
    update_defaults,
)
from memcached_webhooks.patches import field_at
from memcached_webhooks.stored import Spec, Stored
from memcached_webhooks.warnings import (
    FEW,
    ONE,
    decode_valid,
    image_warnings,
    in_place_warnings,
    interval_warnings,
    outdated_warnings,
    restart_warnings,
)

MAX_UNAVAILABLE, MAX_SURGE = "rollout/maxUnavailable", "rollout/maxSurge"

REMEDIES: Final = {
    SPREAD: shared.REMEDIES[SPREAD],
    BUDGET: shared.REMEDIES[BUDGET],
    MAX_UNAVAILABLE: OTHER_VALUE,
    MAX_SURGE: OTHER_VALUE,
    IMAGE: OTHER_VALUE,
    AGENT_IMAGE: OTHER_VALUE,
}
"""By path, the remedy for a field whose default is set because an update removed it."""

EFFECT_TEXT: Final = {
    Effect.IN_PLACE: ("updates", " in place"),
    Effect.RESIZE: ("resizes", " in place"),
    Effect.RESTART: ("restarts memcached in", ""),
}
"""The effect of a change on pods that it does not replace: the words before and after their number."""

ITEMS_TEXT: Final[dict[bool | None, str]] = {
    False: "cached items are kept",
    True: "cached items are lost, because an older release cannot read them",
    None: "cached items are kept, unless the release is older",
}
"""The effect on the items of a change that keeps the pods, by whether the release of memcached is older."""

BYTES_PER_HEADER: Final = 112
"""What an item on the disk needs in memory with a key of at most 23 bytes: its header, and its part of the hash table
(measured on 1.6.45)."""

LARGE_VALUE: Final = 16 * 2**10
"""Mean size of items, bytes, above which a warning says that the disk needs such items."""

LARGE_ITEM: Final = memory.DEFAULT_ITEM_SIZE
SMALL_MEMORY: Final = 256 * memory.MEBIBYTE
"""With items of 1.5 MB, one command for 100 items failed with 64 MiB, and none for 42 items with 256 MiB (1.6.45)."""


def admission(images: Images) -> Admission:
    """The admission of Memcached. `images`: those to set in an object that names none."""
    return Admission(MEMCACHED, partial(defaults, images=images), partial(warnings, images=images), removals)


def defaults(spec: Spec, old: Stored | None, images: Images) -> dict[str, Any]:
    """Every missing default. A null counts as missing.

    A new object gets all of them. An update gets those of the fields that it removes, so that a manifest has the same
    result for a new object and for an existing one. It gets no others: they could replace the pods of a running cache.
    """
    fixed = {"size": DEFAULT_SIZE, "containerPort": DEFAULT_CONTAINER_PORT}
    new = missing(spec, {**_images(spec, images), **placing_defaults(spec.get("identity"), field_at(spec, MAX_SURGE))})
    return missing(spec, fixed) | (new if old is None else missing(spec, _update_defaults(new, old)))


def _images(spec: Spec, images: Images) -> dict[str, str]:
    """The images of a new object. That of the agent is set only if there is one."""
    return {IMAGE: images.memcached} | ({AGENT_IMAGE: images.agent} if asks_for_agent(spec) else {})


def placing_defaults(identity: Any, max_surge: Any = None) -> dict[str, Any]:
    """The defaults of a new object that an existing one without them does not get, because it would lose its cache.

    `max_surge`: that of the object. If it is 0, a pod must be unavailable while it is replaced.
    """
    stable = identity == STABLE
    return {
        **shared.placing_defaults(in_place=stable),
        MAX_UNAVAILABLE: 1 if stable or max_surge in ZERO else 0,
        MAX_SURGE: 0 if stable else 1,
    }


def _update_defaults(new: Mapping[str, Any], old: Stored) -> dict[str, Any]:
    """As for every kind. `new`: the missing defaults of a new object.

    The image of the agent is also set when it is first needed.
    """
    return update_defaults(new, old) | agent_default(new, had_agent=asks_for_agent(old.spec))


def removals(fields: Mapping[str, Any], old: Spec) -> list[str]:
    """Warnings about removed fields, if their defaults in `fields` differ from the values of the old spec."""
    return shared.removals(fields, old, REMEDIES)


def warnings(obj: Any, old: Any, images: Images) -> list[str]:
    """Warnings about a valid object that is created (`old` is None) or changed."""
    new = decode_spec(obj)
    before = decode_valid(decode_spec, old)
    limits = [
        *_thread_warnings(new, before),
        *_limit_warnings(new, before),
        *interval_warnings(new.monitoring, before and before.monitoring),
        *_disk_warnings(new, before),
        *_scaling_warnings(new, before),
    ]
    if before is None:
        return [
            *_address_warnings(new),
            *limits,
            *_image_warnings(new, None, images),
            *_agent_warnings(new, None, images),
        ]
    image = _image_warnings(new, before, images)
    pods = min(new.size, before.size)
    restart = _update_warnings(effect_of(new, before), pods, _pace(new), older=is_older(new.image, before.image))
    return [*_size_warnings(new, before), *restart, *limits, *image, *_agent_warnings(new, before, images)]


def _update_warnings(change: ChangeEffect, pods: int, pace: str, *, older: bool | None) -> Iterator[str]:
    """A warning about what a change does to the pods, and whether their items are lost.

    `older`: whether the image is older; None if that is not known.
    """
    if change.effect is Effect.NOTHING:
        return iter(())
    if change.effect is Effect.REPLACE:
        return restart_warnings(change.fields, pods, "cached items", pace)
    loses = older if change.effect is Effect.RESTART else False
    # If every cluster loses the items, the ability to resize pods makes no difference.
    resizes = change.resizes and loses is not True
    return in_place_warnings(change.fields, pods, EFFECT_TEXT[change.effect], pace, ITEMS_TEXT[loses], resizes=resizes)


def _pace(new: MemcachedSpec) -> str:
    """The number of pods that are changed at once, in words."""
    if not is_stable(new):
        return ONE if new.rollout and _is_one_pod_more_or_less(new.rollout) else FEW
    slots = slots_at_once(new)
    if slots > 1:
        return f"at most {slots} at a time{'' if warm_up_of(new) is None else ', including pods that are not warm yet'}"
    return ONE if warm_up_of(new) is None else f"{ONE}, each after the previous one is warm"


def _is_one_pod_more_or_less(rollout: RolloutSpec) -> bool:
    """Whether a rollout is limited to one additional or one missing pod. A percentage can mean several pods."""
    return [limit for limit in (rollout.max_surge, rollout.max_unavailable) if limit not in ZERO] == [1]


def _limit_warnings(new: MemcachedSpec, old: MemcachedSpec | None) -> Iterator[str]:
    """A warning if fewer slots than `rollout.maxUnavailable` are changed at once, unless that is as before."""
    limits = [slots_at_once(spec) if _is_limited(spec) else None for spec in (new, old) if spec]
    if limits[0] is not None and limits[0] not in limits[1:]:
        budget = "spec.podDisruptionBudget.maxUnavailable"
        yield f"{budget} limits spec.rollout.maxUnavailable to {limits[0]}; raise it as well"


def _is_limited(spec: MemcachedSpec) -> bool:
    """Whether the budget allows fewer slots at once than the rollout."""
    return is_stable(spec) and slots_at_once(spec) < requested_slots(spec)


def _image_warnings(new: MemcachedSpec, old: MemcachedSpec | None, images: Images) -> Iterator[str]:
    """A warning about a release with known problems, a kept image that is outdated, or one without a fixed version."""
    image = new.image or ""
    auth, warm, disk = new.auth is not None, restarts_warm(new), new.cache.extstore is not None
    problems = known_problems(image, auth=auth, warm_restart=warm, extstore=disk)
    if problems:
        return iter((f"spec.image: {sentence(image, problems, 1)}",))
    kept = old is not None and new.image == old.image
    return outdated_warnings("spec.image", new.image, images.memcached) if kept else image_warnings(new.image)


def _agent_warnings(new: MemcachedSpec, old: MemcachedSpec | None, images: Images) -> Iterator[str]:
    """A warning if the agent's image has no fixed version, or is an outdated one that is kept."""
    image, before = (spec and spec.agent and spec.agent.image for spec in (new, old))
    if not needs_agent(new) or not image:
        return iter(())
    field = "spec.agent.image"
    return outdated_warnings(field, image, images.agent) if image == before else image_warnings(image, field)


def _address_warnings(new: MemcachedSpec) -> Iterator[str]:
    """A warning about clients that use only one of several pods, which have no names of their own."""
    if new.size > 1 and not is_stable(new):
        yield (
            "Clients must use all addresses of the Service's name. To give each pod a name, create another Memcached "
            "with spec.identity Stable"
        )


def _size_warnings(new: MemcachedSpec, old: MemcachedSpec) -> Iterator[str]:
    """A warning about the keys that move. With consistent hashing, these are the keys of the new or deleted pods."""
    if new.size != old.size:
        share = max(1, round(abs(new.size - old.size) / max(new.size, old.size) * 100))
        if (warm := warm_scaling_of(new)) is not None:
            yield _moved(new, old, share, warm)
            return
        yield (
            f"{old.size} → {new.size} pods: with consistent hashing about {share} % of the keys move"
            f"{_lost(new, old.size) if new.size < old.size else ''}"
        )


def _moved(new: MemcachedSpec, old: MemcachedSpec, share: int, warm: Warm) -> str:
    """The warning about keys that proxies move, if there are any proxies."""
    lost = f"that are not set or added within {warm.duration}" if duration_seconds(warm) else "of these keys"
    return f"{old.size} → {new.size} pods: proxies move about {share} % of the keys in phases; items {lost} are lost"


def _scaling_warnings(new: MemcachedSpec, old: MemcachedSpec | None) -> Iterator[str]:
    """A warning about what a change of size in phases requires, when it is switched on."""
    if warm_scaling_of(new) is not None and (old is None or warm_scaling_of(old) is None):
        yield (
            "spec.scaling.warm: all clients must use MemcachedProxies, because one that connects to a slot can read "
            "outdated items. Items of moving keys that are only read, touched or changed in place are lost, so "
            "duration should be at least the longest TTL"
        )


def _lost(new: MemcachedSpec, old_size: int) -> str:
    """The end of the warning: the slots and the items that a smaller size deletes."""
    if not is_stable(new):
        return "; the cached items of the deleted pods are lost"
    slots = f"slot {new.size}" if old_size - new.size == 1 else f"slots {new.size} to {old_size - 1}"
    return f"; {slots} and the cached items there are deleted"


def _thread_warnings(new: MemcachedSpec, old: MemcachedSpec | None) -> Iterator[str]:
    """A warning if threads are set above twice the CPU limit, unless both are as before."""
    limit = cpu_limit(new.resources)
    if new.cache.threads is None or limit is None or new.cache.threads <= 2 * limit:
        return
    if old is None or (old.cache.threads, cpu_limit(old.resources)) != (new.cache.threads, limit):
        yield (
            f"spec.cache.threads of {new.cache.threads} is more than twice the CPU limit: threads that wait for a CPU "
            "make memcached slower"
        )


def _disk_warnings(new: MemcachedSpec, old: MemcachedSpec | None) -> list[str]:
    """The warnings about a valid object that is created (`old` is None) or changed, without those that it had."""
    before = [] if old is None else list(_of_disk(old))
    return [warning for warning in _of_disk(new) if warning not in before]


def _of_disk(spec: MemcachedSpec) -> Iterator[str]:
    disk = spec.cache.extstore
    if disk is None:
        return
    cache = resolved(spec)
    yield from _header_warnings(spec, file_mebibytes(disk.size) * memory.MEBIBYTE, cache)
    if cache.item_size > LARGE_ITEM and cache.memory < SMALL_MEMORY:
        yield (
            f"a get of many large items on the disk can fail with spec.cache.memory below "
            f"{memory.mebibytes_text(SMALL_MEMORY)}, because each of them needs memory until it is sent"
        )
    if cpu_limit(spec.resources) is not None and age_seconds(disk.item_age) != 0:
        yield (
            "a CPU limit can cost items: a memcached that waits for CPU evicts items before it writes them to the "
            "disk; remove spec.resources.limits.cpu, or set spec.cache.extstore.itemAge to 0s"
        )


def _header_warnings(spec: MemcachedSpec, file: int, cache: Resolved) -> Iterator[str]:
    """A warning if headers of items that fill the disk would need more than half of the memory."""
    smallest = 2 * BYTES_PER_HEADER * file // cache.memory
    if smallest > LARGE_VALUE:
        yield (
            f"spec.cache.memory of {spec.cache.memory} is little for spec.cache.extstore.size: each item on the disk "
            f"has a header in memory, so only items of {smallest // 1024}Ki or more on average can fill the disk"
        )
