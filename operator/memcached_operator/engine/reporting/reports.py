"""The texts of Events: what a condition, created children and a new pod template report. Pure functions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import groupby
from typing import Any, NotRequired, TypedDict

from memcached_api import conditions as c
from memcached_operator.engine.reporting.conditions import Condition
from memcached_operator.findings.finding import Intervention
from memcached_operator.kube import texts
from memcached_operator.kube.resource import Key, Object, nested_map

ROLLOUT_STARTED = "RolloutStarted"
CONTAINERS = ("containers", "initContainers")

MAX_NAMES = 3
"""Names of children of one kind in a message. A Memcached with slots has a Service for each."""
MAX_IMAGE_LENGTH = 255
"""Characters of an image in a message."""

Template = Mapping[str, Any]


class _Container(TypedDict):
    """The fields of a container that messages name."""

    name: str
    image: NotRequired[str]


@dataclass(frozen=True)
class Report:
    """What an Event says. `warning`: its type is Warning instead of Normal.

    `name`: the end of the name of the Event, if it must be created only once; otherwise it follows from the time.
    """

    reason: str
    message: str
    warning: bool = False
    name: str = ""


def of_condition(condition: Condition) -> Report:
    """The report of a condition whose status or reason has changed."""
    good = (condition["status"] == c.TRUE) == (condition["type"] == c.AVAILABLE)
    return Report(condition["reason"], condition["message"], warning=not good)


def of_created(keys: Iterable[Key]) -> Report:
    """The report of the children that one reconcile has created, at least one."""
    by_kind = groupby(sorted(keys, key=_kind), _kind)
    return Report(
        "Created", f"Created {', '.join(_listed(kind, [key.name for key in same]) for kind, same in by_kind)}"
    )


def of_rollout(key: Key, before: Object, after: Object) -> Report | None:
    """The report of a child before and after a write; None if its pod template is the same, or if it has none."""
    old, new = (nested_map(child, "spec", "template") for child in (before, after))
    if old == new:
        return None
    changes = "; ".join([*_changed_images(old, new), *_changed_fields(old, new)])
    return Report(ROLLOUT_STARTED, f"{key.resource.kind} {key.name} has a new pod template: {changes}")


def of_intervention(cr: Object, intervention: Intervention) -> Report:
    """The report of what another client did. After a restart of the process, it has the name of the one before."""
    text = f"{cr['metadata']['uid']} {intervention.message}"
    return Report(intervention.reason, intervention.message, warning=True, name=sha256(text.encode()).hexdigest()[:16])


def _kind(key: Key) -> str:
    return key.resource.kind


def _listed(kind: str, names: list[str]) -> str:
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return f"{kind} {', '.join(names[:MAX_NAMES])}{more}"


def _changed_images(old: Template, new: Template) -> Iterator[str]:
    for name, before, after in _pairs(old, new):
        if before.get("image") != after.get("image"):
            images = (texts.name(image.get("image", ""), MAX_IMAGE_LENGTH) for image in (before, after))
            yield f"image of {texts.name(name)} {' → '.join(images)}"


def _changed_fields(old: Template, new: Template) -> Iterator[str]:
    """One sentence with the names of all other changed fields, if there are any."""
    names = [*_differences(nested_map(old, "metadata"), nested_map(new, "metadata"))]
    before, after = _containers(old), _containers(new)
    names += [f"container {texts.name(name)}" for name in sorted(before.keys() ^ after.keys())]
    names += [
        f"{texts.name(name)}.{field}" for name, one, other in _pairs(old, new) for field in _differences(one, other)
    ]
    names += _differences(nested_map(old, "spec"), nested_map(new, "spec"))
    if names:
        yield f"changed: {', '.join(names)}"


def _differences(old: Mapping[str, object], new: Mapping[str, object]) -> list[str]:
    """The names of the fields that differ, without those that are reported in detail."""
    names = sorted(old.keys() | new.keys())
    return [name for name in names if name not in ("image", *CONTAINERS) and old.get(name) != new.get(name)]


def _containers(template: Template) -> dict[str, _Container]:
    spec = nested_map(template, "spec")
    lists: list[Sequence[_Container]] = [spec.get(field) or () for field in CONTAINERS]
    return {container["name"]: container for containers in lists for container in containers}


def _pairs(old: Template, new: Template) -> Iterator[tuple[str, _Container, _Container]]:
    """Each container that both templates have."""
    before, after = _containers(old), _containers(new)
    return ((name, before[name], after[name]) for name in after if name in before)
