"""Where the steps of a case happen: an API server, and an operator that applies the accepted specs."""

import json
from collections.abc import Iterable
from functools import partial
from typing import Any, Protocol, cast

from faults.esr import check_operator, check_quiet
from faults.sandbox import Sandbox, wait_until
from faults.state import CHILDREN, SLOT_CHILDREN
from memcached_api import conditions as c
from memcached_operator.kube.client import JSON_PATCH, ApiError
from memcached_operator.kube.resource import CONFIG_MAPS, SERVICES, Key, Object, Resource, nested_list, nested_map
from memcached_operator.memcached.addresses import CONNECTION_SUFFIX
from memcached_operator.memcached.slots.pause import TEMPLATE_ANNOTATION
from memcached_operator.memcached.updates.origin import ORIGIN_ANNOTATION
from memcached_operator.reconcile.intent import INTENT_ANNOTATION

RECOVERY = 30.0
"""Seconds until a spec is applied."""
COLLECTION = 90.0
"""Seconds until the garbage collector deletes children. It looks for new kinds every 30 s."""
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

    async def start(self) -> None:
        """Start the operator."""
        ...

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
        """Once the operator has processed the spec: the spec as stored, and the visible result (`result`)."""
        ...

    async def check_end(self) -> None:
        """Check that nothing is written without a change, and that the operator had no error."""
        ...


class SandboxStage:
    """The API server of a fault run, and the operator of a sandbox."""

    def __init__(self, sandbox: Sandbox, resource: Resource) -> None:
        self._sandbox = sandbox
        self._resource = resource

    async def start(self) -> None:
        """Start the operator and wait until it watches."""
        self._sandbox.operator.start()
        await self._sandbox.wait_watching()

    async def create(self, name: str, spec: Object) -> str:
        """Create an object."""
        try:
            await self._sandbox.create(self._resource, name, spec)
        except ApiError as error:
            return denial_of(error)
        return ""

    async def replace(self, name: str, spec: Object) -> str:
        """Replace the spec of an object."""
        patch = [{"op": "replace", "path": "/spec", "value": spec}]
        path = self._resource.path(self._sandbox.namespace, name)
        try:
            await self._sandbox.client.request("PATCH", path, patch, JSON_PATCH)
        except ApiError as error:
            return denial_of(error)
        return ""

    async def delete(self, name: str) -> None:
        """Delete an object and wait until its children are deleted."""
        await self._sandbox.delete(self._resource, name)
        for resource in CHILDREN:
            await self._sandbox.wait_deleted(resource, name, COLLECTION)

    async def applied(self, name: str) -> tuple[Object, Object]:
        """Wait until the operator has processed the current generation and does not progress or is paused."""
        obj = await wait_until(partial(self._applied, name), RECOVERY, f"the spec of {name} is applied")
        keys = [Key(resource, self._sandbox.namespace, name) for resource in CHILDREN]
        keys += [Key(resource, self._sandbox.namespace, f"{name}{suffix}") for resource, suffix in SLOT_CHILDREN]
        children = [await self._sandbox.client.get(key) for key in keys]
        return obj["spec"], result(children, name, _problem(obj))

    async def check_end(self) -> None:
        """Check writes, exits and log."""
        await check_quiet(self._sandbox)
        check_operator(self._sandbox)

    async def _applied(self, name: str) -> Object | None:
        obj = await self._sandbox.get(self._resource, name) or {}
        status = nested_map(obj, "status")
        found = {each["type"]: each for each in status.get("conditions", [])}
        if status.get("observedGeneration") != obj["metadata"]["generation"]:
            return None
        progressing = found[c.PROGRESSING]
        done = progressing["status"] == c.FALSE or progressing["reason"] == c.PAUSED
        return obj if done and await self._lists_services(name) else None

    async def _lists_services(self, name: str) -> bool:
        """Whether the ConfigMap lists the Services of slots, if there are any: half a second after their creation."""
        connection = await self._sandbox.get(CONFIG_MAPS, f"{name}{CONNECTION_SUFFIX}")
        service = await self._sandbox.get(SERVICES, f"{name}-0")
        return service is None or connection is None or "fixed-servers" in connection["data"]


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


def _problem(obj: Object) -> str:
    """The message of the condition Degraded; empty if it is not True."""
    conditions = nested_list(obj, "status", "conditions")
    return next((each["message"] for each in conditions if (each["type"], each["status"]) == ("Degraded", "True")), "")


def denial_of(error: ApiError) -> str:
    """The message of a response that denies a spec. Raises every other error."""
    if error.code not in DENIED:
        raise error
    return str(error) or "no message"
