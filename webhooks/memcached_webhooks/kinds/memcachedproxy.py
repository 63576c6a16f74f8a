"""Admission of MemcachedProxy: defaults and warnings."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from memcached_api.images import Images
from memcached_api.memcachedproxy.agent import asks_for_agent
from memcached_api.memcachedproxy.limits import DEFAULT_PORT, DEFAULT_SIZE
from memcached_api.memcachedproxy.resolved import changed_fields, settings
from memcached_api.memcachedproxy.types import MEMCACHEDPROXY, MemcachedProxySpec, decode_spec
from memcached_api.shared.resources import cpu_limit
from memcached_webhooks.admission import Admission
from memcached_webhooks.defaults import (
    AGENT_IMAGE,
    IMAGE,
    agent_default,
    missing,
    placing_defaults,
    removals,
    update_defaults,
)
from memcached_webhooks.stored import Spec, Stored
from memcached_webhooks.warnings import decode_valid, image_warnings, interval_warnings, names, outdated_warnings


def admission(images: Images) -> Admission:
    """The admission of MemcachedProxy. `images`: those to set in an object that names none."""
    return Admission(MEMCACHEDPROXY, partial(defaults, images=images), partial(warnings, images=images), removals)


def defaults(spec: Spec, old: Stored | None, images: Images) -> dict[str, Any]:
    """Every missing default. An update gets those of the fields that it removes, as for a Memcached."""
    fixed = {"size": DEFAULT_SIZE, "port": DEFAULT_PORT}
    agent = {AGENT_IMAGE: images.agent} if asks_for_agent(spec) else {}
    new = missing(spec, {IMAGE: images.memcached, **agent, **placing_defaults(in_place=False)})
    if old is None:
        return missing(spec, fixed) | new
    updated = update_defaults(new, old) | agent_default(new, had_agent=asks_for_agent(old.spec))
    return missing(spec, {**fixed, **updated})


def warnings(obj: Any, old: Any, images: Images) -> list[str]:
    """Warnings about a valid object that is created (`old` is None) or changed."""
    new = decode_spec(obj)
    before = decode_valid(decode_spec, old)
    slow = interval_warnings(new.monitoring, before and before.monitoring)
    if before is None:
        return [*_thread_warnings(new, None), *slow, *image_warnings(new.image)]
    kept = new.image == before.image
    return [
        *_reference_warnings(new, before),
        *_size_warnings(new.size, before.size),
        *_restart_warnings(new, before),
        *_thread_warnings(new, before),
        *slow,
        *(outdated_warnings("spec.image", new.image, images.memcached) if kept else image_warnings(new.image)),
    ]


def _reference_warnings(new: MemcachedProxySpec, old: MemcachedProxySpec) -> Iterator[str]:
    """A warning about another cache, which has none of the items of the current one."""
    name = new.memcached_ref.name
    if name != old.memcached_ref.name:
        yield f"spec.memcachedRef.name: all keys are read from Memcached {name}, where they are cold"


def _size_warnings(new: int, old: int) -> Iterator[str]:
    if new < old:
        yield f"{old - new} of {old} pods will be deleted; the connections of their clients are closed"


def _restart_warnings(new: MemcachedProxySpec, old: MemcachedProxySpec) -> Iterator[str]:
    """A warning if fields change that replace the pods. No item is lost: proxies have none."""
    if fields := changed_fields(new, old):
        pods = min(new.size, old.size)
        replaced = "1 pod" if pods == 1 else f"{pods} pods"
        yield f"{names(fields)}: this change replaces {replaced}; each connection of a client is closed once"


def _thread_warnings(new: MemcachedProxySpec, old: MemcachedProxySpec | None) -> Iterator[str]:
    """A warning if there are more threads than twice the CPU limit, unless both are as before."""
    limit, threads = cpu_limit(new.resources), settings(new).threads
    if limit is None or threads <= 2 * limit:
        return
    if old is None or (settings(old).threads, cpu_limit(old.resources)) != (threads, limit):
        yield (
            f"spec.threads of {threads} is more than twice the CPU limit: threads that wait for a CPU make memcached "
            "slower"
        )
