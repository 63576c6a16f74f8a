"""Label selectors and field selectors of lists and watches."""

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from memcached_operator.kube.resource import Object
from simulation.api.errors import bad_request

Match = Callable[[Object], bool]
"""Whether an object is selected."""

_SET: Final = re.compile(r"\s*([^\s,=!()]+)\s+(in|notin)\s+\(([^)]*)\)\s*")
_PART: Final = re.compile(r"(?:[^,(]|\([^)]*\))+")


def everything(obj: Object) -> bool:
    """Select every object."""
    return True


def matcher(labels: str, fields: str) -> Match:
    """The objects that both selectors select. Raises StatusError."""
    conditions = [_of_labels(part) for part in _PART.findall(labels)] + [_of_field(part) for part in _split(fields)]
    if not conditions:
        return everything
    if len(conditions) == 1:
        return conditions[0]
    return lambda obj: all(condition(obj) for condition in conditions)


def _split(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def _labels(obj: Object) -> Mapping[str, Any]:
    return obj["metadata"].get("labels") or {}


def _of_labels(part: str) -> Match:
    if (found := _SET.fullmatch(part)) is not None:
        name, operator, text = found.groups()
        values = frozenset(each.strip() for each in text.split(","))
        if operator == "in":
            return lambda obj: _labels(obj).get(name) in values
        return lambda obj: _labels(obj).get(name) not in values
    part = part.strip()
    if "!=" in part:
        name, _, value = part.partition("!=")
        return lambda obj: _labels(obj).get(name) != value
    if "=" in part:
        name, _, value = part.partition("=")
        wanted = value.removeprefix("=")
        return lambda obj: _labels(obj).get(name) == wanted
    if part.startswith("!"):
        return lambda obj: part[1:] not in _labels(obj)
    return lambda obj: part in _labels(obj)


FIELDS: Final = (
    *("metadata.name", "metadata.namespace", "spec.nodeName", "status.phase", "type", "reason"),
    *("reportingComponent", "spec.restartPolicy", "spec.schedulerName"),
)
"""The fields of all resources, besides those of the objects of Events."""


def _of_field(part: str) -> Match:
    name, operator, value = re.split(r"(!=|==|=)", part, maxsplit=1)
    if name not in FIELDS and not name.startswith(("involvedObject.", "regarding.")):
        problem = 'is not a known field selector: only "metadata.name", "metadata.namespace"'
        raise bad_request(f'"{name}" {problem}')
    path, negated = name.split("."), operator == "!="

    def match(obj: Object) -> bool:
        found: Any = obj
        for each in path:
            found = found.get(each) or {}
        return ((found or "") == value) is not negated

    return match
