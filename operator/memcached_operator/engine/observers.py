"""Which custom resources a change of an object of others concerns."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, Final

from memcached_operator.engine.kind import Observed
from memcached_operator.kube.resource import Key, Resource

MAX_COMPARISONS: Final = 40_000
"""Comparisons of one change with what plans have read, each of about 0.1 µs. The custom resources beyond are reconciled
without one: the change costs the turns of its own namespace."""

MAX_WEIGHT: Final = 4_000
MAX_TOTAL: Final = 100_000
"""Labels of pods that are kept of one custom resource, and of all, each of about 100 bytes. The custom resources beyond
are reconciled at every change."""


class Observers:
    """What the last plan of each custom resource has observed."""

    def __init__(self) -> None:
        self._observed: dict[Key, Observed] = {}
        self._weight = 0

    def remember(self, key: Key, observed: Observed | None) -> None:
        """Remember this of the newest plan, if it is not too large. None: every change concerns it."""
        if (before := self._observed.pop(key, None)) is not None:
            self._weight -= before.weight
        if observed is not None and observed.weight <= min(MAX_WEIGHT, MAX_TOTAL - self._weight):
            self._observed[key] = observed
            self._weight += observed.weight

    def concerned(
        self, keys: Iterable[Key], resource: Resource, before: Mapping[Key, Any], after: Mapping[Key, Any]
    ) -> Iterator[Key]:
        """Those custom resources whose plan depends on the change of the views of their namespace.

        Their plans have read `before`, or views on which they depend in the same way. One without a plan is concerned.
        """
        changed = [key for key in before.keys() | after.keys() if before.get(key) is not after.get(key)]
        left = MAX_COMPARISONS
        for key in keys if changed else ():
            observed = self._observed.get(key)
            if observed is None:
                yield key
                continue
            left -= 2 * observed.comparisons(resource) * len(changed)
            if left < 0 or any(
                _dependency(observed, resource, before, each) != _dependency(observed, resource, after, each)
                for each in changed
            ):
                yield key


def _dependency(observed: Observed, resource: Resource, views: Mapping[Key, Any], key: Key) -> Hashable:
    return observed.dependency(resource, views[key]) if key in views else None
