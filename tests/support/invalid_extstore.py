"""Memcached objects with `cache.extstore`: rows of the tables in invalid_memcached."""

from typing import Any, Final

from support.invalid import InvalidObject, Spec, Table, at, row

EXTSTORE: Final[Spec] = {"size": "4Gi"}
CACHE: Final[Spec] = {"memory": "256Mi", "extstore": EXTSTORE}
LARGE: Final[Spec] = {"memory": "9Gi", "extstore": EXTSTORE}
STABLE: Final[Spec] = {"identity": "Stable", "cache": CACHE}


def disk(**fields: Any) -> Spec:
    """A valid spec with these fields of `cache.extstore`."""
    return {"identity": "Stable", "cache": {"memory": "1Gi", "extstore": {**EXTSTORE, **fields}}}


def _at(path: str, value: Any, *message: str) -> InvalidObject:
    return at(path, value, *message, given=STABLE)


def _needs(memory: str, least: str, **cache: Any) -> InvalidObject:
    given = {"identity": "Stable", "cache": {"extstore": EXTSTORE, **cache}}
    return at("cache.memory", memory, f"must be at least {least} with spec.cache.extstore", "raise it", given=given)


INVALID: Final[Table] = (
    *(
        at("cache.extstore", EXTSTORE, "must not be set without spec.identity Stable", "remove it", given=given)
        for given in ({"cache": {"memory": "256Mi"}}, {"identity": "Pooled", "cache": {"memory": "256Mi"}})
    ),
    *(
        at("cache.extstore.size", size, "must be a quantity from 1Gi to 4Ti", given=disk() | {"cache": LARGE})
        for size in ("1023Mi", "4097Gi", "0")
    ),
    _at("cache.extstore.storageClassName", "Fast", "must be the name of a StorageClass"),
    row(
        disk(volume="EmptyDir", storageClassName="fast"),
        *("spec.cache.extstore.storageClassName", "has no effect with volume EmptyDir", "remove it"),
    ),
    *(
        _at("cache.extstore.itemAge", age, "must be 0s, or a time in hours, minutes and seconds")
        for age in ("0", "0m", "86401s", "24h1s", "1d", "-1s", "1.5s")
    ),
    *(_at("cache.extstore.threads", threads, "must be between 1 and 64") for threads in (0, 65)),
    _at("cache.warmRestart", True, "must not be true with spec.cache.extstore", "remove one of the two"),
    _at("cache.evictions", False, "must not be false with spec.cache.extstore", "remove it"),
    row(
        {"identity": "Stable", "cache": {**CACHE, "extraArgs": ["-o slab_automove=0"]}},
        *("spec.cache.extraArgs", "must not contain -o slab_automove=0 with spec.cache.extstore"),
    ),
    row(
        {"identity": "Stable", "cache": {**LARGE, "maxItemSize": "66560Ki"}},
        *("spec.cache.maxItemSize", "must be at most 64Mi with spec.cache.extstore"),
    ),
    row(
        {"identity": "Stable", "cache": {"extstore": EXTSTORE}},
        *("spec.cache.memory", "must be set with spec.cache.extstore", "at least 64Mi"),
    ),
    _needs("63Mi", "64Mi"),
    _needs("79Mi", "80Mi", maxItemSize="2560Ki"),
    _needs("209Mi", "210Mi", extstore={"size": "102.5Gi"}),
    row(
        {"identity": "Stable", "cache": {**CACHE, "maxConnections": 31}},
        *("spec.cache.maxConnections", "must be at least 5 times spec.cache.threads plus 12 with spec.cache.extstore"),
    ),
    _at("monitoring.insight", {}, "must not be enabled with spec.cache.extstore", "remove it"),
    row(
        {**STABLE, "podTemplate": {"spec": {"securityContext": {"runAsUser": 11211}}}},
        *(
            "spec.podTemplate.spec.securityContext.fsGroup",
            "must be set with spec.cache.extstore and runAsUser or runAsGroup",
        ),
    ),
    row(
        {**disk(volume="EmptyDir"), "resources": {"limits": {"ephemeral-storage": "3Gi"}}},
        *("spec.resources.limits", "must be at least spec.cache.extstore.size with volume EmptyDir", "raise it"),
    ),
    at(
        *("resources.limits[memory]", "378Mi", "must be at least 381Mi", "4 threads, with spec.cache.extstore"),
        given=STABLE,
    ),
)
"""Violations of the rules about items on a disk."""

VALID: Final[dict[str, Spec]] = {
    "items on a disk": STABLE,
    "the smallest disk": disk(size="1Gi", threads=1, itemAge="0s"),
    "the largest disk": {"identity": "Stable", "cache": {"memory": "9Gi", "extstore": {"size": "4Ti", "threads": 64}}},
    "the longest age of an item": disk(itemAge="24h"),
    "a disk for the largest items": {
        "identity": "Stable",
        "cache": {"memory": "2Gi", "maxItemSize": "64Mi", "extstore": EXTSTORE},
    },
    "a disk for items of a size with a fraction": {
        "identity": "Stable",
        "cache": {"memory": "2032Mi", "maxItemSize": "63.5Mi", "extstore": EXTSTORE},
    },
    "a disk and few connections": {"identity": "Stable", "cache": {**CACHE, "maxConnections": 32}},
    "the disk of the node": disk(volume="EmptyDir") | {"resources": {"limits": {"ephemeral-storage": "4Gi"}}},
    "the disk of the node, and a user without a group": disk(volume="EmptyDir")
    | {"podTemplate": {"spec": {"securityContext": {"runAsUser": 11211}}}},
    "a disk, and only a profile": STABLE
    | {"podTemplate": {"spec": {"securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}}}},
    "a disk, and the user of the platform": STABLE | {"podTemplate": {"spec": {"securityContext": {}}}},
    "a disk, and no insight": STABLE | {"monitoring": {"insight": {"enabled": False}}},
}
"""Valid specs that are close to a rule about items on a disk."""
