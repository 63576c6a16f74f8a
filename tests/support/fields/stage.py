"""Where the steps of a test happen: an API server, and a plan of the accepted specs."""

import json
from collections.abc import Iterable
from typing import Any, Protocol, cast

from memcached_api.annotations import INTENT_ANNOTATION, ORIGIN_ANNOTATION, TEMPLATE_ANNOTATION
from memcached_operator.kube.client import ApiError
from memcached_operator.kube.resource import Object

ALLOCATED = ("clusterIP", "clusterIPs")
"""Values that differ between two Services with the same spec."""
GENERATED = (INTENT_ANNOTATION, TEMPLATE_ANNOTATION, ORIGIN_ANNOTATION, "deployment.kubernetes.io/revision")
"""Annotations of children, and of their pods, that are not compared: what they depend on is, and a changed Deployment
has a history."""
MEANINGFUL = (
    *("networkPolicy", "podDisruptionBudget", "monitoring", "podMonitor", "rules", "tls", "warmUp"),
    *("securityContext", "podSelector", "namespaceSelector"),
)
"""Fields whose empty object has another effect than leaving them out."""
PROBLEM = "problem"
"""Key of the reported problem in a result."""
DENIED = (400, 422)
"""Codes of a response that denies a spec."""


class Stage(Protocol):
    """What a case needs. `create` and `replace` return the message of a denial, or "" if the spec was accepted."""

    async def create(self, name: str, spec: Object) -> str:
        """Create an object."""
        ...

    async def replace(self, name: str, spec: Object) -> str:
        """Replace the spec of an object."""
        ...

    async def delete(self, name: str) -> None:
        """Delete an object and its children."""
        ...

    async def applied(self, name: str) -> tuple[Object, Object]:
        """The spec as stored, and the visible result of the operator's plan (`result`)."""
        ...


def result(children: Iterable[Object | None], name: str, problem: str) -> Object:
    """The children by kind, with what follows the object's name in theirs (`Service-0`), and the reported problem.

    Of a child: its spec without ALLOCATED values, its labels, and its annotations without GENERATED ones; NAME instead
    of the object's name.
    """
    found = {
        f"{child['kind']}{child['metadata']['name'].removeprefix(name)}": _visible(child) for child in children if child
    }
    return {**json.loads(json.dumps(found).replace(name, "NAME")), PROBLEM: problem}


def _visible(child: Object) -> Object:
    meta: Object = {field: child["metadata"].get(field) or {} for field in ("labels", "annotations")}
    content: Object = child["spec"] if "spec" in child else {"data": child["data"]}
    return {**without(content, *ALLOCATED, *GENERATED), "metadata": without(meta, *GENERATED)}


def without(value: Any, *names: str) -> Any:
    """A value without all fields of these names."""
    if isinstance(value, dict):
        fields = cast("Object", value).items()
        return {name: without(inner, *names) for name, inner in fields if name not in names}
    return [without(item, *names) for item in cast("list[Any]", value)] if isinstance(value, list) else value


def pruned(value: Any) -> Any:
    """A value without empty fields, except MEANINGFUL ones."""
    if isinstance(value, list):
        return [pruned(item) for item in cast("list[Any]", value)]
    if not isinstance(value, dict):
        return value
    found = {name: pruned(inner) for name, inner in cast("Object", value).items()}
    return {name: inner for name, inner in found.items() if _has_meaning(name, inner)}


def _has_meaning(name: str, value: Any) -> bool:
    return value is not None and value != [] and (value != {} or name in MEANINGFUL)


def denial_of(error: ApiError) -> str:
    """The message of a response that denies a spec. Raises every other error."""
    if error.code not in DENIED:
        raise error
    return str(error) or "no message"
