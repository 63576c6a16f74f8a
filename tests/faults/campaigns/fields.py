"""T8: every field of both kinds, as the CRDs have them: set, changed, emptied, deleted, at its ends, invalid."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import yaml

from faults.case import Case, References
from faults.esr import calm, quiet
from faults.process import ROOT
from faults.stage import Stage, until
from faults.state import GIVEN, difference, state_of
from faults.workloads import IMAGE, OTHER_IMAGE
from memcached_operator.appservice.controller import APPSERVICES
from memcached_operator.kube.client import JSON_PATCH, ApiError
from memcached_operator.kube.resource import Object, Resource, nested_map
from memcached_operator.memcached.controller import MEMCACHEDS

VICTIM, FRESH = "changed", "fresh"
"""Names that stand nowhere else in an object: they are masked."""
RECOVERY = 30.0
BASES: dict[str, Object] = {"Memcached": {"image": IMAGE}, "AppService": {"image": IMAGE}}
CRDS = {"cache.example.com_memcacheds": MEMCACHEDS, "app.example.com_appservices": APPSERVICES}
Path = tuple[str, ...]
"""To a field: names, `[]` for the entries of a list, and keys of a map."""

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
"""Two good values of fields whose schema alone does not give any; by the last name."""
MAP_KEYS = ("cpu", "memory")
ENDS_LEFT_OUT = {"size": "2147483647 pods are more than any cluster has", "nodePort": "others may have it"}
VISIBLE = ("change", "revert", "doubled-halved")
INVALID: tuple[Any, ...] = ({"no": "such thing"}, "-1x", -1, "Not Valid!")


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
        """The smallest spec in which the field has a value."""
        return {**BASES[self.resource.kind], **_built(self.root, self.path, value)}

    def emptied(self) -> Object:
        """A spec in which what holds the field is there, and empty."""
        top = self.root["properties"][self.path[0]]
        empties: dict[str, object] = {"array": [], "object": {}}
        empty = empties.get(top.get("type", ""))
        return {**BASES[self.resource.kind], self.path[0]: empty}


def leaves(resource: Resource, root: Mapping[str, Any]) -> Iterator[Leaf]:
    """Every field that has a value and not fields of its own."""

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
    """Two good values of a field."""
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


def _built(schema: Mapping[str, Any], path: Path, value: Any) -> Any:
    """The smallest value of a schema that holds another value at a path, with all that is required beside it."""
    if not path:
        return value
    head, rest = path[0], path[1:]
    if head == "[]":
        return [_built(schema["items"], rest, value)]
    if "properties" not in schema:
        return {head: value}
    wanted: Object = {
        name: values(Leaf(MEMCACHEDS, ("[]", name), schema["properties"][name], schema))[0]
        for name in schema.get("required", ())
        if name != head and "default" not in schema["properties"][name]
    }
    return {**wanted, head: _built(schema["properties"][head], rest, value)}


def steps(leaf: Leaf) -> dict[str, list[Object]]:
    """What is done to a field: the specs that follow one another."""
    one, two = values(leaf)
    base = BASES[leaf.resource.kind]
    first, second = leaf.with_value(one), leaf.with_value(two)
    found = {"set": [base, first], "change": [first, second], "revert": [first, second, first]}
    if leaf.path != ("image",):
        found |= {"delete": [second, base], "empty": [first, leaf.emptied()]}
    ends = leaf.schema.get("enum") or [leaf.schema[end] for end in ("minimum", "maximum") if end in leaf.schema]
    if ends and leaf.path[-1] not in ENDS_LEFT_OUT:
        found["ends"] = [leaf.with_value(value) for value in ends]
    if leaf.path[-1] in MAP_KEYS:
        amount, unit = {"cpu": (100, "m"), "memory": (128, "Mi")}[leaf.path[-1]]
        found["doubled-halved"] = [leaf.with_value(f"{number}{unit}") for number in (amount, 2 * amount, amount)]
    return found


async def played(stage: Stage, _: References, leaf: Leaf, specs: list[Object], visible: bool) -> None:
    """An object goes through the specs; its children are then those of a new object with the last of them.

    `visible`: each step must be seen in the children.
    """
    stage.operator.start()
    await stage.watching()
    await stage.create(leaf.resource, VICTIM, specs[0])
    await _done(stage, leaf.resource, VICTIM)
    for spec in specs[1:]:
        before = await _children(stage, leaf.resource, VICTIM)
        if not await _replaced(stage, leaf.resource, spec):
            continue
        await _done(stage, leaf.resource, VICTIM)
        after = await _children(stage, leaf.resource, VICTIM)
        stage.holds(not visible or before != after, f"{leaf.name} changed, and no child did")
    await quiet(stage)
    live = await stage.get(leaf.resource, VICTIM) or {}
    kept = await _children(stage, leaf.resource, VICTIM)
    await stage.delete(leaf.resource, VICTIM)
    for plural in ("deployments", "services"):
        await until(partial(_absent, stage, plural), RECOVERY, f"{plural} of {VICTIM} go")
    await stage.create(leaf.resource, FRESH, live["spec"])
    await _done(stage, leaf.resource, FRESH)
    fresh = await _children(stage, leaf.resource, FRESH)
    stage.holds(kept == fresh, f"the children tell of the past: {difference(kept, fresh)}")
    calm(stage)


async def invalid(stage: Stage, _: References, leaf: Leaf) -> None:
    """Bad values are refused, and change nothing."""
    good = leaf.with_value(values(leaf)[0])
    stage.operator.start()
    await stage.watching()
    await stage.create(leaf.resource, VICTIM, good)
    await _done(stage, leaf.resource, VICTIM)
    before = await _children(stage, leaf.resource, VICTIM)
    accepted = [value for value in INVALID if await _replaced(stage, leaf.resource, leaf.with_value(value))]
    stage.holds(len(accepted) < len(INVALID), f"everything is accepted: {accepted}")
    await _replaced(stage, leaf.resource, good)
    await _done(stage, leaf.resource, VICTIM)
    await quiet(stage)
    after = await _children(stage, leaf.resource, VICTIM)
    stage.holds(before == after, "the children are not as before")
    calm(stage)


async def _replaced(stage: Stage, resource: Resource, spec: Object) -> bool:
    """Whether a spec is accepted in the place of the one there is."""
    patch = [{"op": "replace", "path": "/spec", "value": spec}]
    try:
        await stage.client.request("PATCH", resource.path(stage.namespace, VICTIM), patch, JSON_PATCH)
    except ApiError as error:
        if error.code not in (400, 422):
            raise
        return False
    return True


async def _done(stage: Stage, resource: Resource, name: str) -> None:
    """Wait until the operator has answered the present generation, and nothing moves."""

    async def look() -> bool:
        obj = await stage.get(resource, name) or {}
        found = {each["type"]: each for each in obj.get("status", {}).get("conditions", [])}
        current = obj.get("status", {}).get("observedGeneration") == obj["metadata"]["generation"]
        return current and found["Progressing"]["status"] == "False"

    await until(look, RECOVERY, f"{name} is carried out")


async def _children(stage: Stage, resource: Resource, name: str) -> Object:
    """The children's specs, without the object's name."""
    state = await state_of(stage.client, resource, stage.namespace, name)
    specs: Object = {plural: nested_map(state, plural, "spec") for plural in ("deployments", "services")}
    return json.loads(json.dumps(specs).replace(f'"{name}"', '"NAME"'))


async def _absent(stage: Stage, plural: str) -> bool:
    state = await state_of(stage.client, MEMCACHEDS, stage.namespace, VICTIM)
    return state[plural] is None


def cases() -> list[Case]:
    """Every action on every field: a new field of a CRD joins by itself."""
    found: list[Case] = []
    for file, resource in CRDS.items():
        crd = yaml.safe_load((ROOT / f"config/crd/bases/{file}.yaml").read_text())
        version = next(version for version in crd["spec"]["versions"] if version["storage"])
        for leaf in leaves(resource, version["schema"]["openAPIV3Schema"]["properties"]["spec"]):
            # A node port is the whole cluster's.
            alone = leaf.path[-1] == "nodePort"
            for action, specs in steps(leaf).items():
                gate = action == "delete" and leaf.path[0] in ("cache", "envs") and leaf.path[-1] in ("memory", "value")
                one, two = values(leaf)
                play = partial(
                    played,
                    leaf=leaf,
                    specs=specs,
                    visible=action in VISIBLE and one != two and leaf.path[-1] not in GIVEN,
                )
                found.append(Case(f"T8/{leaf.name}/{action}", play, gate=gate, alone=alone))
            found.append(Case(f"T8/{leaf.name}/invalid", partial(invalid, leaf=leaf), alone=alone))
    return found
