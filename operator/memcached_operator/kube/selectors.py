"""Label selectors, as Kubernetes evaluates them."""

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from memcached_operator.kube.resource import nested_list, nested_map


class Selector:
    """A LabelSelector. An empty one selects every object.

    Its author decides how many requirements it has. The time to evaluate it depends on the number of labels only.
    """

    def __init__(self, selector: Mapping[str, Any]) -> None:
        # By the keys of labels; None: every value.
        self._allowed: dict[str, frozenset[str] | None] = {}
        self._denied: dict[str, frozenset[str] | None] = {}
        self._selects_none = False
        for key, value in nested_map(selector, "matchLabels").items():
            self._allow(key, [value])
        for requirement in nested_list(selector, "matchExpressions"):
            self._add(requirement["operator"], requirement["key"], requirement.get("values") or ())

    def selects(self, labels: Mapping[str, str]) -> bool:
        """True if it selects an object with these labels."""
        if self._selects_none or len(self._allowed) > len(labels):
            return False
        for key, values in self._allowed.items():
            if key not in labels or (values is not None and labels[key] not in values):
                return False
        common = self._denied.keys() & labels.keys()  # as many steps as the smaller of the two has keys
        return not any((values := self._denied[key]) is None or labels[key] in values for key in common)

    def names_any(self, keys: Iterable[str]) -> bool:
        """Whether one of these keys of labels has a requirement."""
        return any(key in self._allowed or key in self._denied for key in keys)

    def _add(self, operator: str, key: str, values: Iterable[str]) -> None:
        match operator:
            case "In":
                self._allow(key, values)
            case "NotIn":
                known = self._denied.get(key, frozenset())
                self._denied[sys.intern(key)] = None if known is None else known | _values(values)
            case "Exists":
                self._allowed.setdefault(sys.intern(key), None)
            case "DoesNotExist":
                self._denied[sys.intern(key)] = None
            case _:
                self._selects_none = True

    def _allow(self, key: str, values: Iterable[str]) -> None:
        known = self._allowed.get(key)
        self._allowed[sys.intern(key)] = _values(values) if known is None else known & _values(values)


def _values(values: Iterable[str]) -> frozenset[str]:
    # The same values are often repeated.
    return frozenset(map(sys.intern, values))
