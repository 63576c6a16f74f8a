"""T8: every field of both kinds, from the CRDs: set, changed, emptied, deleted, at its bounds, invalid."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import yaml

from faults.case import Case, References
from faults.esr import check_operator, check_quiet
from faults.process import ROOT
from faults.sandbox import Sandbox, wait_until
from faults.state import CHOSEN, difference, state_of
from faults.workloads import IMAGE, OTHER_IMAGE
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import JSON_PATCH, ApiError
from memcached_operator.kube.resource import Object, Resource, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS

VICTIM, NEW = "changed", "fresh"
"""Names that occur nowhere else in an object, because they are masked."""
RECOVERY = 30.0
BASES: dict[str, Object] = {"Memcached": {"image": IMAGE}, "AppService": {"image": IMAGE}}
CRDS = {"cache.example.com_memcacheds": MEMCACHEDS, "app.example.com_appservices": APPSERVICES}
Path = tuple[str, ...]
"""Path of a field: names, `[]` for the items of a list, and keys of a map."""

VALUES: dict[str, tuple[Any, Any]] = {
    "size": (1, 3),
    "image": (IMAGE, OTHER_IMAGE),
    "cpu": ("100m", "200m"),
    "memory": ("128Mi", "256Mi"),
    "fieldPath": ("metadata.name", "metadata.namespace"),
    "apiVersion": ("v1", "v1"),
    "resource": ("limits.cpu", "limits.memory"),
    "divisor": ("1", "1m"),
    "targetPort": (8080, 8081),
    "nodePort": (30990, 30991),
}
"""Two valid values of fields whose schema does not suffice, by the last name of the path."""
MAP_KEYS = ("cpu", "memory")
BOUNDS_SKIPPED = {"size": "no cluster has room for 2147483647 pods", "nodePort": "another Service may use it"}
VISIBLE = ("change", "revert", "doubled-halved")
INVALID: tuple[Any, ...] = ({"no": "such field"}, "-1x", -1, "Not Valid!")


@dataclass(frozen=True)
class Leaf:
    """One field of a spec, with its schema."""

    resource: Resource
    path: Path
    schema: Mapping[str, Any]
    root: Mapping[str, Any]

    @property
    def name(self) -> str:
        """As in the names of cases."""
        return f"{self.resource.plural}/{'.'.join(self.path).replace('.[]', '[]')}"

    def with_value(self, value: Any) -> Object:
        """The smallest spec in which the field has this value."""
        return {**BASES[self.resource.kind], **_build(self.root, self.path, value)}

    def emptied(self) -> Object:
        """A spec in which the field's top-level parent is empty."""
        top = self.root["properties"][self.path[0]]
        empties: dict[str, object] = {"array": [], "object": {}}
        empty = empties.get(top.get("type", ""))
        return {**BASES[self.resource.kind], self.path[0]: empty}


def leaves(resource: Resource, root: Mapping[str, Any]) -> Iterator[Leaf]:
    """Every field without fields of its own."""

    def walk(schema: Mapping[str, Any], path: Path) -> Iterator[Leaf]:
        if "properties" in schema:
            for name, inner in schema["properties"].items():
                yield from walk(inner, (*path, name))
        elif schema.get("type") == "array":
            yield from walk(schema["items"], (*path, "[]"))
        elif "additionalProperties" in schema:
            for key in MAP_KEYS:
                yield from walk(schema["additionalProperties"], (*path, key))
        else:
            yield Leaf(resource, path, schema, root)

    return walk(root, ())


def values(leaf: Leaf) -> tuple[Any, Any]:
    """Two valid values of a field."""
    name, schema = leaf.path[-1], leaf.schema
    if name in VALUES:
        return VALUES[name]
    if "enum" in schema:
        return schema["enum"][0], schema["enum"][-1]
    if schema.get("type") == "integer":
        start = schema.get("minimum", 0) + 1000
        return start, start + 1
    if schema.get("type") == "boolean":
        return True, False
    return ("aa", "bb") if leaf.path[-2:] != ("[]", "name") or leaf.path[0] != "envs" else ("AA", "BB")


def _build(schema: Mapping[str, Any], path: Path, value: Any) -> Any:
    """The smallest value of a schema with another value at a path, including all required fields."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    if head == "[]":
        return [_build(schema["items"], rest, value)]
    if "properties" not in schema:
        return {head: value}
    wanted: Object = {
        name: values(Leaf(MEMCACHEDS, ("[]", name), schema["properties"][name], schema))[0]
        for name in schema.get("required", ())
        if name != head and "default" not in schema["properties"][name]
    }
    return {**wanted, head: _build(schema["properties"][head], rest, value)}


def steps(leaf: Leaf) -> dict[str, list[Object]]:
    """The specs of each action on a field, in order."""
    one, two = values(leaf)
    base = BASES[leaf.resource.kind]
    first, second = leaf.with_value(one), leaf.with_value(two)
    found = {"set": [base, first], "change": [first, second], "revert": [first, second, first]}
    if leaf.path != ("image",):
        found |= {"delete": [second, base], "empty": [first, leaf.emptied()]}
    bounds = leaf.schema.get("enum") or [leaf.schema[end] for end in ("minimum", "maximum") if end in leaf.schema]
    if bounds and leaf.path[-1] not in BOUNDS_SKIPPED:
        found["bounds"] = [leaf.with_value(value) for value in bounds]
    if leaf.path[-1] in MAP_KEYS:
        amount, unit = {"cpu": (100, "m"), "memory": (128, "Mi")}[leaf.path[-1]]
        found["doubled-halved"] = [leaf.with_value(f"{number}{unit}") for number in (amount, 2 * amount, amount)]
    return found


async def run_steps(sandbox: Sandbox, _: References, leaf: Leaf, specs: list[Object], visible: bool) -> None:
    """Update an object with the specs; then its children must equal those of a new object with the last spec.

    `visible`: each step must change a child.
    """
    sandbox.operator.start()
    await sandbox.wait_watching()
    await sandbox.create(leaf.resource, VICTIM, specs[0])
    await _wait_applied(sandbox, leaf.resource, VICTIM)
    for spec in specs[1:]:
        before = await _children(sandbox, leaf.resource, VICTIM)
        if not await _replace_spec(sandbox, leaf.resource, spec):
            continue
        await _wait_applied(sandbox, leaf.resource, VICTIM)
        after = await _children(sandbox, leaf.resource, VICTIM)
        sandbox.check(not visible or before != after, f"{leaf.name} changed, but no child did")
    await check_quiet(sandbox)
    live = await sandbox.get(leaf.resource, VICTIM) or {}
    updated = await _children(sandbox, leaf.resource, VICTIM)
    await sandbox.delete(leaf.resource, VICTIM)
    for plural in ("deployments", "services"):
        await wait_until(partial(_absent, sandbox, plural), RECOVERY, f"{plural} of {VICTIM} are deleted")
    await sandbox.create(leaf.resource, NEW, live["spec"])
    await _wait_applied(sandbox, leaf.resource, NEW)
    new = await _children(sandbox, leaf.resource, NEW)
    sandbox.check(updated == new, f"the children differ from those of a new object: {difference(updated, new)}")
    check_operator(sandbox)


async def invalid(sandbox: Sandbox, _: References, leaf: Leaf) -> None:
    """Invalid values are rejected and change nothing."""
    valid = leaf.with_value(values(leaf)[0])
    sandbox.operator.start()
    await sandbox.wait_watching()
    await sandbox.create(leaf.resource, VICTIM, valid)
    await _wait_applied(sandbox, leaf.resource, VICTIM)
    before = await _children(sandbox, leaf.resource, VICTIM)
    accepted = [value for value in INVALID if await _replace_spec(sandbox, leaf.resource, leaf.with_value(value))]
    sandbox.check(len(accepted) < len(INVALID), f"all invalid values were accepted: {accepted}")
    await _replace_spec(sandbox, leaf.resource, valid)
    await _wait_applied(sandbox, leaf.resource, VICTIM)
    await check_quiet(sandbox)
    after = await _children(sandbox, leaf.resource, VICTIM)
    sandbox.check(before == after, "the children have changed")
    check_operator(sandbox)


async def _replace_spec(sandbox: Sandbox, resource: Resource, spec: Object) -> bool:
    """Replace the spec of the object; returns whether it was accepted."""
    patch = [{"op": "replace", "path": "/spec", "value": spec}]
    try:
        await sandbox.client.request("PATCH", resource.path(sandbox.namespace, VICTIM), patch, JSON_PATCH)
    except ApiError as error:
        if error.code not in (400, 422):
            raise
        return False
    return True


async def _wait_applied(sandbox: Sandbox, resource: Resource, name: str) -> None:
    """Wait until the operator has processed the current generation and does not progress."""

    async def poll() -> bool:
        obj = await sandbox.get(resource, name) or {}
        found = {each["type"]: each for each in obj.get("status", {}).get("conditions", [])}
        current = obj.get("status", {}).get("observedGeneration") == obj["metadata"]["generation"]
        return current and found["Progressing"]["status"] == "False"

    await wait_until(poll, RECOVERY, f"the spec of {name} is applied")


async def _children(sandbox: Sandbox, resource: Resource, name: str) -> Object:
    """The specs of the children, without the object's name."""
    state = await state_of(sandbox.client, resource, sandbox.namespace, name)
    specs: Object = {plural: nested_map(state, plural, "spec") for plural in ("deployments", "services")}
    return json.loads(json.dumps(specs).replace(f'"{name}"', '"NAME"'))


async def _absent(sandbox: Sandbox, plural: str) -> bool:
    state = await state_of(sandbox.client, MEMCACHEDS, sandbox.namespace, VICTIM)
    return state[plural] is None


def cases() -> list[Case]:
    """Every action on every field. New fields of a CRD get their cases automatically."""
    found: list[Case] = []
    for file, resource in CRDS.items():
        crd = yaml.safe_load((ROOT / f"config/crd/bases/{file}.yaml").read_text())
        version = next(version for version in crd["spec"]["versions"] if version["storage"])
        for leaf in leaves(resource, version["schema"]["openAPIV3Schema"]["properties"]["spec"]):
            # Node ports are shared by the whole cluster.
            alone = leaf.path[-1] == "nodePort"
            for action, specs in steps(leaf).items():
                gate = action == "delete" and leaf.path[0] in ("cache", "envs") and leaf.path[-1] in ("memory", "value")
                one, two = values(leaf)
                run = partial(
                    run_steps,
                    leaf=leaf,
                    specs=specs,
                    visible=action in VISIBLE and one != two and leaf.path[-1] not in CHOSEN,
                )
                found.append(Case(f"T8/{leaf.name}/{action}", run, gate=gate, alone=alone))
            found.append(Case(f"T8/{leaf.name}/invalid", partial(invalid, leaf=leaf), alone=alone))
    return found
