"""The objects of a walk, and the specs that users choose."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from faults.workloads import GUARDS, IMAGE, MONITORED, OTHER_GUARDS, PORTS, SLOTS, cache
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS
from memcached_operator.memcachedproxy.controller import MEMCACHEDPROXIES

NAMESPACE: Final = "ns-walk"
STABLE: Final = ("wk-s", "wk-t")
"""The names of the Memcacheds with slots. Walks without proxies have only the first one."""
PROXIES: Final = ("wk-x", "wk-y")
"""The names of the MemcachedProxies."""
MISSING: Final = "wk-z"
"""The name of a Memcached that never exists."""
OWNERS: Final[dict[str, Resource]] = {
    "wk-a": MEMCACHEDS,
    "wk-b": MEMCACHEDS,
    **dict.fromkeys(STABLE, MEMCACHEDS),
    "wk-p": APPSERVICES,
    "wk-q": APPSERVICES,
    **dict.fromkeys(PROXIES, MEMCACHEDPROXIES),
}
"""The objects, by name. The names have the same length and occur in no other text."""
NAME: Final = len(MISSING)
"""The length of a name."""
PLAIN, PAUSED = "plain", "paused"
OPTIONS: Final[dict[str, Object]] = {
    PLAIN: {},
    "memory": {"cache": {"memory": "128Mi"}},
    "guards": GUARDS,
    "other guards": OTHER_GUARDS,
    "monitored": MONITORED,
    "port": {"containerPort": 11212},
    "restarted": {"rollout": {"restartedAt": "2030-01-01T00:00:30Z"}},
    PAUSED: {"rollout": {"paused": True}},
}
"""Further fields of a Memcached."""
APP_OPTIONS: Final[dict[str, Object]] = {
    "memory": PORTS,
    "guards": PORTS,
    "port": {"ports": [{"port": 81, "name": "http"}, {"port": 9, "name": "other"}]},
}
"""Those of an AppService for the same options. It has none for the others."""
PROXY_OPTIONS: Final[dict[str, Object]] = {
    **OPTIONS,
    "memory": {"threads": 4},
    "monitored": {**GUARDS, "monitoring": {"podMonitor": {}}},
    "port": {"port": 11300},
}
"""Those of a MemcachedProxy."""
OPTIONS_OF: Final = {MEMCACHEDS: OPTIONS, APPSERVICES: APP_OPTIONS, MEMCACHEDPROXIES: PROXY_OPTIONS}


@dataclass(frozen=True)
class Spec:
    """What a user chooses. `reference`: the Memcached that a MemcachedProxy names."""

    size: int = 2
    option: str = PLAIN
    image: str = IMAGE
    reference: str = STABLE[0]

    def of(self, name: str) -> Object:
        """The spec of the object with this name."""
        fields: Object = SLOTS if name in STABLE else {}
        if is_proxy(name):
            fields = {"memcachedRef": {"name": self.reference}}
        options = OPTIONS_OF[OWNERS[name]].get(self.option, {})
        return dict(cache(size=self.size, image=self.image, **fields, **options))

    def is_paused(self, name: str) -> bool:
        """Whether no pod of the object with this name is replaced."""
        return self.option == PAUSED and OWNERS[name] != APPSERVICES


def is_proxy(name: str) -> bool:
    """Whether the object with this name is a MemcachedProxy."""
    return name in PROXIES


def served_by(name: str, wanted: Mapping[str, Spec]) -> str:
    """The name of the Memcached whose slots a MemcachedProxy can use; empty if there is none."""
    spec = wanted.get(name)
    found = spec.reference if spec is not None and is_proxy(name) else ""
    return found if found in STABLE and found in wanted else ""


def key_of_owner(name: str) -> Key:
    """The key of the object with this name."""
    return Key(OWNERS[name], NAMESPACE, name)


def identity(name: str, wanted: Mapping[str, Spec]) -> str:
    """Equal for objects that differ in their names only, also in the specs of the Memcacheds that they name.

    The name of a Memcached with slots counts: the digest of its pod template depends on it.
    """
    served = served_by(name, wanted)
    used = wanted[served].of(served) if served else {}
    what = name if name in STABLE else OWNERS[name].kind
    return json.dumps((what, wanted[name].of(name), used), sort_keys=True)


def is_comparable(name: str, wanted: Mapping[str, Spec]) -> bool:
    """Whether the state of an object is that of a new one: nothing is paused, and a proxy has a Memcached."""
    names = (name, served_by(name, wanted)) if is_proxy(name) else (name,)
    return all(each in wanted and not wanted[each].is_paused(each) for each in names)


def without_name(state: Object, name: str) -> Any:
    """A state in which a placeholder replaces the name of the object."""
    return json.loads(json.dumps(state).replace(name, "NAME"))
