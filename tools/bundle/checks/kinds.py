"""The kinds a bundle owns, their examples, and what a console shows of them."""

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

import msgspec

from bundle.checks.subject import Finding, Subject, of_csv
from bundle.descriptors import spec_descriptors, status_descriptors
from bundle.images import related_variables
from bundle.objects import Object, group_of, name_of
from crds.__main__ import KINDS
from memcached_api.kinds import Kind
from memcached_api.values import is_array, is_object, nested_field
from memcached_webhooks import appservice, memcached
from memcached_webhooks.admission import path_of
from memcached_webhooks.review import CREATE, GroupVersionKind, Handler, Patch, Request

_NEEDS: Final = (
    ("customresourcedefinitions", "required"),
    ("apiservicedefinitions", "owned"),
    ("apiservicedefinitions", "required"),
)
INSTALL_MODES: Final = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
DEFAULT_IMAGE: Final = "RELATED_IMAGE_MEMCACHED"


def handlers(subject: Subject) -> dict[str, Handler]:
    """Our own admission functions, by path, with the default image that the bundle gives them."""
    images = [found for each in subject.containers if (found := related_variables(each).get(DEFAULT_IMAGE))]
    return memcached.handlers(images[0] if images else "") | appservice.handlers()


def owned(subject: Subject) -> Iterator[Finding]:
    """4: owned kinds, CustomResourceDefinitions and their served versions are the same ones."""
    crds = subject.of("CustomResourceDefinition")
    served = {
        (name_of(crd), version["name"], crd["spec"]["names"]["kind"]): path
        for path, crd in crds.items()
        for version in crd["spec"]["versions"]
        if version["served"]
    }
    claimed = [(each["name"], each["version"], each["kind"]) for each in subject.owned]
    for each in claimed:
        if each not in served or claimed.count(each) > 1:
            yield of_csv("owned", " ".join(each), "must stand once, and be a served version of a CRD in the bundle")
    for (name, version, _), path in served.items():
        if (name, version) not in {each[:2] for each in claimed}:
            yield Finding(
                path, "spec.versions", version, f"must be among the owned kinds of the CSV: add {name} {version}"
            )
    for each in subject.owned:
        for field in ("displayName", "description", "resources"):
            if not each.get(field):
                yield of_csv(f"owned[{each['kind']} {each['version']}].{field}", each.get(field), "must say something")


def generations(subject: Subject) -> Iterator[Finding]:
    """14: both generations of OLM install it: in all install modes, without conversions and without dependencies."""
    modes: list[dict[str, Any]] = subject.spec.get("installModes", [])
    for mode in INSTALL_MODES:
        found = [each.get("supported") for each in modes if each["type"] == mode]
        if found != [True]:
            yield of_csv(f"spec.installModes[{mode}]", found, "must stand once, and be true: all four are tested")
    for each in modes:
        if each["type"] not in INSTALL_MODES:
            yield of_csv("spec.installModes", each["type"], f"must be one of {', '.join(INSTALL_MODES)}")
    yield from _refused_by_v1(subject)


def _refused_by_v1(subject: Subject) -> Iterator[Finding]:
    for place, field in _NEEDS:
        if value := nested_field(subject.spec, place, field):
            yield of_csv(f"spec.{place}.{field}", value, "must go: OLM v1 refuses it")
    for webhook in subject.webhooks:
        if webhook.get("type") == "ConversionWebhook":
            name = webhook.get("generateName")
            yield of_csv("webhookdefinitions", name, "must go: a conversion is allowed in AllNamespaces only")
    for path, crd in subject.of("CustomResourceDefinition").items():
        if crd["spec"].get("conversion", {}).get("strategy", "None") != "None":
            yield Finding(path, "spec.conversion", crd["spec"]["conversion"], "must go: its webhook is not there yet")


def examples(subject: Subject) -> Iterator[Finding]:
    """5: examples for each owned kind and version, each known to its schema and let in by our own admission."""
    found: Any = subject.examples
    if not is_array(found) or not all(is_object(each) for each in found):
        yield of_csv("alm-examples", subject.annotations.get("alm-examples"), "must be a JSON list of objects")
        return
    wanted = {(each["name"].partition(".")[2], each["version"], each["kind"]): each for each in subject.owned}
    there = {_gvk(each) for each in found}
    for gvk in wanted.keys() - there:
        yield of_csv("alm-examples", " ".join(gvk), "must have an example: add one to config/samples")
    for each in found:
        place = f"alm-examples[{each.get('kind')} {nested_field(each, 'metadata', 'name')}]"
        if _gvk(each) not in wanted:
            yield of_csv(place, each.get("apiVersion"), "must be of an owned kind and version")
        else:
            yield from _example(subject, place, each)


def _gvk(each: Object) -> tuple[str, str, str]:
    version = str(each.get("apiVersion", ""))
    return group_of({"apiVersion": version}), version.rpartition("/")[2], str(each.get("kind"))


def _example(subject: Subject, place: str, each: Object) -> Iterator[Finding]:
    if not is_object(each.get("spec")):
        yield of_csv(f"{place}.spec", each.get("spec"), "must be there: the scorecard asks for it")
        return
    schema = schema_of(subject, each)
    # Of metadata a CRD's schema tells next to nothing.
    rest = {field: value for field, value in each.items() if field != "metadata"}
    for path, value in unknown_fields(rest, schema, ""):
        yield of_csv(f"{place}{path}", value, "is no field of the CRD")
    for kind in KINDS:
        if (kind.group, kind.name) == (_gvk(each)[0], each["kind"]):
            yield from _refused(handlers(subject), kind, place, defaulted(each, schema))


def schema_of(subject: Subject, example: Object) -> dict[str, Any]:
    """The schema of an object's kind and version; empty where the bundle has none."""
    for crd in subject.of("CustomResourceDefinition").values():
        for version in crd["spec"]["versions"]:
            if _gvk(example) == (crd["spec"]["group"], version["name"], crd["spec"]["names"]["kind"]):
                return nested_field(version, "schema", "openAPIV3Schema") or {}
    return {}


def defaulted(value: Any, schema: dict[str, Any]) -> Any:
    """The value as the API server fills it in from the schema, before it asks admission."""
    if is_array(value):
        return [defaulted(item, schema.get("items", {})) for item in value]
    if not is_object(value):
        return value
    fields: dict[str, Any] = schema.get("properties", {})
    filled = {name: deepcopy(field["default"]) for name, field in fields.items() if "default" in field} | value
    return {name: defaulted(item, fields.get(name, {})) for name, item in filled.items()}


def unknown_fields(value: Any, schema: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """The fields that a schema does not have, at any depth."""
    if is_array(value):
        for index, item in enumerate(value):
            yield from unknown_fields(item, schema.get("items", {}), f"{path}[{index}]")
    elif is_object(value) and "properties" in schema:
        for field, item in value.items():
            if field not in schema["properties"]:
                yield f"{path}.{field}", item
            else:
                yield from unknown_fields(item, schema["properties"][field], f"{path}.{field}")


def _raw(obj: Object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.json.encode(obj))


def _refused(judged: dict[str, Handler], kind: Kind[Any], place: str, each: Object) -> Iterator[Finding]:
    """Asked as the API server asks when the example is created: validation sees what mutation has made of it."""
    request = Request("", CREATE, GroupVersionKind(*_gvk(each)), object=_raw(each))
    mutation = judged[path_of("mutate", kind)](request)
    validation = judged[path_of("validate", kind)](
        msgspec.structs.replace(request, object=_raw(patched(each, mutation.patch)))
    )
    for denial in filter(None, (mutation.denial, validation.denial)):
        for cause in denial.details.get("causes") or [{"field": "", "message": denial.message}]:
            path, remedy = cause["field"], f"is refused at admission: {cause['message']}"
            yield of_csv(f"{place}.{path}", nested_field(each, *path.split(".")), remedy)


def patched(each: Object, patch: Patch) -> Object:
    """The object after the patches that our admission makes: all of them add a field below another."""
    changed = deepcopy(each)
    for step in patch:
        *way, last = step["path"].removeprefix("/").split("/")
        nested_field(changed, *way)[last] = step["value"]
    return changed


def descriptors(subject: Subject) -> Iterator[Finding]:
    """5: every field of spec and status has a name, a description and a descriptor for consoles."""
    kinds = {f"{kind.plural}.{kind.group}": kind for kind in KINDS}
    for each in subject.owned:
        kind, place = kinds.get(each["name"]), f"owned[{each['kind']} {each['version']}]"
        if kind is None:
            yield of_csv(place, each["name"], f"must be one of {', '.join(sorted(kinds))}")
            continue
        for part, wanted in (("spec", spec_descriptors(kind)), ("status", status_descriptors(kind))):
            found = {entry["path"]: entry for entry in each.get(f"{part}Descriptors", [])}
            for entry in wanted:
                if found.get(entry["path"]) != entry:
                    value = found.get(entry["path"], {}).get("displayName")
                    yield of_csv(
                        f"{place}.{part}Descriptors[{entry['path']}]",
                        value,
                        "must be as the types say: run `make bundle`",
                    )
            for path in sorted(found.keys() - {entry["path"] for entry in wanted}):
                yield of_csv(f"{place}.{part}Descriptors[{path}]", path, "is no field: run `make bundle`")
