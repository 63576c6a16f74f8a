"""Admission of Memcached: defaults and warnings."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from functools import partial
from typing import Any, Final

from memcached_api.image import is_older, repository
from memcached_api.images import Images
from memcached_api.known_problems import known_problems, sentence
from memcached_api.memcached.agent import asks_for_agent
from memcached_api.memcached.changes.effect import ChangeEffect, effect_of
from memcached_api.memcached.effects import Effect
from memcached_api.memcached.placing import RolloutSpec
from memcached_api.memcached.resolved import requested_slots, slots_at_once
from memcached_api.memcached.rules.spec import STABLE
from memcached_api.memcached.types import (
    DEFAULT_CONTAINER_PORT,
    DEFAULT_SIZE,
    MEMCACHED,
    MemcachedSpec,
    decode_spec,
    is_stable,
    needs_agent,
    restarts_warm,
    warm_up_of,
)
from memcached_api.quantity import parse_quantity
from memcached_api.shared.rules.placing import ZERO
from memcached_api.validation.field_errors import truncate
from memcached_webhooks.admission import Admission
from memcached_webhooks.patches import field_at
from memcached_webhooks.stored import Spec, Stored
from memcached_webhooks.warnings import (
    FEW,
    MAX_IMAGE_LENGTH,
    ONE,
    decode_valid,
    image_warnings,
    in_place_warnings,
    restart_warnings,
)

SPREAD_KEYS: Final = ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
"""The node labels over whose values the pods of a new object are distributed."""

IMAGE, AGENT_IMAGE = "image", "agent/image"
SPREAD: Final = "podTemplate/spec/topologySpreadConstraints"
BUDGET: Final = "podDisruptionBudget"
MAX_UNAVAILABLE, MAX_SURGE, RESTARTED_AT = "rollout/maxUnavailable", "rollout/maxSurge", "rollout/restartedAt"

_OTHER_VALUE: Final = "to use another value, set the field"
REMEDIES: Final = {
    SPREAD: "to have none, set it to []",
    BUDGET: "to have none, set enabled: false",
    MAX_UNAVAILABLE: _OTHER_VALUE,
    MAX_SURGE: _OTHER_VALUE,
    IMAGE: _OTHER_VALUE,
    AGENT_IMAGE: _OTHER_VALUE,
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


def admission(images: Images) -> Admission:
    """The admission of Memcached. `images`: those to set in an object that names none."""
    return Admission(MEMCACHED, partial(defaults, images=images), partial(warnings, images=images), removals)


def defaults(spec: Spec, old: Stored | None, images: Images) -> dict[str, Any]:
    """Every missing default. A null counts as missing.

    A new object gets all of them. An update gets those of the fields that it removes, so that a manifest has the same
    result for a new object and for an existing one. It gets no others: they could replace the pods of a running cache.
    """
    fixed = {"size": DEFAULT_SIZE, "containerPort": DEFAULT_CONTAINER_PORT}
    new = _missing(spec, {**_images(spec, images), **placing_defaults(spec.get("identity"), field_at(spec, MAX_SURGE))})
    return _missing(spec, fixed) | (new if old is None else _missing(spec, _update_defaults(new, old)))


def _missing(spec: Spec, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the fields that a spec does not have."""
    return {path: value for path, value in fields.items() if field_at(spec, path) is None}


def _images(spec: Spec, images: Images) -> dict[str, str]:
    """The images of a new object. That of the agent is set only if there is one."""
    return {IMAGE: images.memcached} | ({AGENT_IMAGE: images.agent} if asks_for_agent(spec) else {})


def placing_defaults(identity: Any, max_surge: Any = None) -> dict[str, Any]:
    """The defaults of a new object that an existing one without them does not get, because it would lose its cache.

    `max_surge`: that of the object. If it is 0, a pod must be unavailable while it is replaced.
    """
    stable = identity == STABLE
    # The slots are updated in place: all pods count for the distribution, not only those of one rollout.
    match_label_keys = {} if stable else {"matchLabelKeys": ["pod-template-hash"]}
    return {
        SPREAD: [_spread(key) | match_label_keys for key in SPREAD_KEYS],
        BUDGET: {"enabled": True, "maxUnavailable": 1},
        MAX_UNAVAILABLE: 1 if stable or max_surge in ZERO else 0,
        MAX_SURGE: 0 if stable else 1,
    }


def _spread(key: str) -> dict[str, Any]:
    """Pods are distributed evenly over the values of a node label, if possible."""
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "ScheduleAnyway"}


def _update_defaults(new: Mapping[str, Any], old: Stored) -> dict[str, Any]:
    """The defaults of removed fields, and values that are kept. `new`: the missing defaults of a new object.

    Kept are the time of a restart, and the images that admission has set, which can be the defaults of an earlier
    release: an unchanged manifest must not replace pods. The image of the agent is also set when it is first needed.
    """
    removed = {path: value for path, value in new.items() if field_at(old.spec, path) is not None}
    pins = [path for path in (IMAGE, AGENT_IMAGE) if path in removed and not old.has_manager(path)]
    kept = {path: field_at(old.spec, path) for path in (*pins, RESTARTED_AT)}
    agent = {AGENT_IMAGE: new[AGENT_IMAGE]} if AGENT_IMAGE in new and not asks_for_agent(old.spec) else {}
    return removed | {path: value for path, value in kept.items() if isinstance(value, str)} | agent


def removals(fields: Mapping[str, Any], old: Spec) -> list[str]:
    """Warnings about removed fields, if their defaults in `fields` differ from the values of the old spec."""
    changed = [path for path in REMEDIES if path in fields and field_at(old, path) not in (None, fields[path])]
    return [
        f"spec.{path.replace('/', '.')} was removed, so its default is set{_value_text(fields[path])}; {REMEDIES[path]}"
        for path in changed
    ]


def _value_text(value: Any) -> str:
    """A default in a warning, if it is short."""
    return f", {truncate(str(value), MAX_IMAGE_LENGTH)}" if isinstance(value, str | int) else ""


def warnings(obj: Any, old: Any, images: Images) -> list[str]:
    """Warnings about a valid object that is created (`old` is None) or changed."""
    new = decode_spec(obj)
    before = decode_valid(decode_spec, old)
    limits = [*_thread_warnings(new, before), *_limit_warnings(new, before)]
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
    lost = ITEMS_TEXT[older if change.effect is Effect.RESTART else False]
    # If every cluster loses the items, the ability to resize pods makes no difference.
    resizes = change.resizes and lost != ITEMS_TEXT[True]
    return in_place_warnings(change.fields, pods, EFFECT_TEXT[change.effect], pace, lost, resizes=resizes)


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
    problems = known_problems(image, auth=new.auth is not None, warm_restart=restarts_warm(new))
    if problems:
        return iter((f"spec.image: {sentence(image, problems, 1)}",))
    kept = old is not None and new.image == old.image
    return _outdated_warnings("spec.image", new.image, images.memcached) if kept else image_warnings(new.image)


def _agent_warnings(new: MemcachedSpec, old: MemcachedSpec | None, images: Images) -> Iterator[str]:
    """A warning if the agent's image has no fixed version, or is an outdated one that is kept."""
    image, before = (spec and spec.agent and spec.agent.image for spec in (new, old))
    if not needs_agent(new) or not image:
        return iter(())
    field = "spec.agent.image"
    return _outdated_warnings(field, image, images.agent) if image == before else image_warnings(image, field)


def _outdated_warnings(field: str, image: str | None, default_image: str) -> Iterator[str]:
    if image and image != default_image and repository(image) == repository(default_image):
        kept, default = (truncate(reference, MAX_IMAGE_LENGTH) for reference in (image, default_image))
        yield f"{field} {kept} is kept; this operator's default is {default}"


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
        yield (
            f"{old.size} → {new.size} pods: with consistent hashing about {share} % of the keys move"
            f"{_lost(new, old.size) if new.size < old.size else ''}"
        )


def _lost(new: MemcachedSpec, old_size: int) -> str:
    """The end of the warning: the slots and the items that a smaller size deletes."""
    if not is_stable(new):
        return "; the cached items of the deleted pods are lost"
    slots = f"slot {new.size}" if old_size - new.size == 1 else f"slots {new.size} to {old_size - 1}"
    return f"; {slots} and the cached items there are deleted"


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
    limit = spec.resources.limits.get("cpu") if spec.resources else None
    return None if limit is None else parse_quantity(limit)
