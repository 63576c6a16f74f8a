"""The scale subresource of workloads and of custom resources."""

from typing import Any, cast

from memcached_operator.kube.resource import Object, nested_map
from simulation.api.errors import bad_request
from simulation.api.kinds import Kind
from simulation.api.patches import json_patch, merge_patch
from simulation.api.registry import Options, Registry
from simulation.api.requests import Request, Target

META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(kind: Kind, obj: Object) -> Object:
    """The Scale of an object."""
    replicas, current, selector = kind.scale or ("", "", "")
    meta = {name: obj["metadata"][name] for name in META}
    status: Object = {"replicas": _at(obj, current) or 0}
    if text := _selector(_at(obj, selector)):
        status["selector"] = text
    spec = {"replicas": _at(obj, replicas)} if _at(obj, replicas) else {}
    return {"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": meta, "spec": spec, "status": status}


def _at(obj: Object, path: str) -> Any:
    *parents, name = path.split(".")
    return nested_map(obj, *parents).get(name)


def _selector(value: Any) -> str:
    if isinstance(value, dict):
        labels = cast("dict[str, str]", nested_map(cast("Object", value), "matchLabels"))
        return ",".join(f"{name}={text}" for name, text in sorted(labels.items()))
    return value or ""


def write(registry: Registry, request: Request, target: Target, options: Options) -> Object:
    """Change the number of pods. Raises StatusError."""
    kind = target.kind
    replicas, _, _ = kind.scale or ("", "", "")

    def change(live: Object) -> Object:
        before, body = scale_of(kind, live), request.json()
        if request.method == "PUT":
            after = cast("Object", body)
        elif isinstance(body, list):
            after = json_patch(before, cast("list[Object]", body))
        else:
            after = merge_patch(before, body)
        wanted = after.get("spec", {}).get("replicas", 0)
        if not isinstance(wanted, int):
            raise bad_request("spec.replicas must be a number")
        meta = {**live["metadata"], "resourceVersion": after["metadata"].get("resourceVersion")}
        return {**_with(live, replicas.split("."), wanted), "metadata": meta}

    return scale_of(kind, registry.patch(kind, target.key, change, options))


def _with(obj: Object, path: list[str], value: Any) -> Object:
    name, *rest = path
    return {**obj, name: _with(obj[name], rest, value) if rest else value}
