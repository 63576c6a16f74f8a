"""The objects of a walk, and the specs that users choose."""

import json
from dataclasses import dataclass
from typing import Any, Final

from faults.workloads import GUARDS, IMAGE, MONITORED, OTHER_GUARDS, PORTS, SLOTS, cache
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.resource import Key, Object, Resource
from memcached_operator.memcached.controller import MEMCACHEDS

NAMESPACE: Final = "ns-walk"
STABLE: Final = "wk-s"
"""The name of the Memcached with slots."""
OWNERS: Final[dict[str, Resource]] = {
    "wk-a": MEMCACHEDS,
    "wk-b": MEMCACHEDS,
    STABLE: MEMCACHEDS,
    "wk-p": APPSERVICES,
    "wk-q": APPSERVICES,
}
"""The objects, by name. The names have the same length and occur in no other text."""
NAME: Final = len(STABLE)
"""The length of a name."""
PAUSED: Final = "paused"
OPTIONS: Final[dict[str, Object]] = {
    "plain": {},
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


@dataclass(frozen=True)
class Spec:
    """What a user chooses."""

    size: int = 2
    option: str = "plain"
    image: str = IMAGE

    def of(self, name: str) -> Object:
        """The spec of the object with this name."""
        options = OPTIONS if OWNERS[name] == MEMCACHEDS else APP_OPTIONS
        slots = SLOTS if name == STABLE else {}
        return dict(cache(size=self.size, image=self.image, **slots, **options.get(self.option, {})))

    def is_paused(self, name: str) -> bool:
        """Whether no pod of the object with this name is replaced."""
        return self.option == PAUSED and OWNERS[name] == MEMCACHEDS


def key_of_owner(name: str) -> Key:
    """The key of the object with this name."""
    return Key(OWNERS[name], NAMESPACE, name)


def identity(name: str, spec: Spec) -> str:
    """Equal for objects that differ in their names only."""
    return json.dumps((OWNERS[name].kind, spec.of(name)), sort_keys=True)


def without_name(state: Object, name: str) -> Any:
    """A state in which a placeholder replaces the name of the object."""
    return json.loads(json.dumps(state).replace(name, "NAME"))
