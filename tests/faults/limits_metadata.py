"""Random labels and annotations at the limits, for the fuzz of the rules."""

from random import Random
from typing import Any

from memcached_operator.kube.resource import Object


def mostly(rng: Random, usual: Any, *others: Any) -> Any:
    """The usual value, or seldom another one: an object with many limits at once is nearly always invalid."""
    return usual if rng.random() < 0.7 else rng.choice(others)


KEYS = (
    *("team", "app.kubernetes.io/name", "app.kubernetes.io/component", "app.kubernetes.io/version"),
    *("app.kubernetes.io/Name", "app.kubernetes.io/instance/", "pod-template-hash", "pod-template-has"),
    *("controller-revision-hash", "apps.kubernetes.io/pod-index", "statefulset.kubernetes.io/pod-name"),
    *("kubectl.kubernetes.io/restartedAt", "kubectl.kubernetes.io/restartedat"),
    *("kubectl.kubernetes.io/last-applied-configuration", "last-applied-configuration"),
    *("memcached-operator.example.com/intent", "memcached-operator.example.com/", "memcached-operator.example.com"),
    *("x.memcached-operator.example.com/intent", "memcached-operator.example.org/intent"),
    *("deployment.kubernetes.io/revision", "deployment.kubernetes.io", "deployments.kubernetes.io/revision"),
    *("deprecated.deployment.rollback.to", "deprecated.deployment.rollback.to2"),
)
"""Keys of labels and annotations: reserved ones, and ones that differ a little."""


def random_metadata(rng: Random) -> Object:
    """Labels or annotations of the pods, the Service or all children: their lists of reserved keys differ."""
    metadata = _entries(rng, 62, 63, 64)
    return rng.choice(({"podTemplate": {"metadata": metadata}}, {"service": metadata}, inherited(rng)))


def inherited(rng: Random) -> Object:
    """Labels or annotations of all children."""
    return {"inheritedMetadata": _entries(rng, 30, 31, 32, 62, 63, 64)}


def _entries(rng: Random, *numbers: int) -> Object:
    """Labels or annotations, mostly few, seldom with one of these numbers of further ones."""
    field, many = rng.choice(("labels", "annotations")), mostly(rng, 0, *numbers)
    found = {f"key-{number}": "" for number in range(many)}
    values = ("", 63 * "a", 64 * "a", "a-", 1024 * "a", 1025 * "a")
    found |= {key: mostly(rng, "a", *values) for key in rng.sample(KEYS, rng.choice((1, 1, 2)))}
    return {field: found}
