"""The kinds a bundle owns, their examples, and what a console shows of them."""

from collections.abc import Iterator
from typing import Any, Final

from bundle.checks.subject import Fault, Subject, of_csv
from bundle.descriptors import spec_descriptors, status_descriptors
from bundle.objects import Object, group_of, name_of
from crds.__main__ import KINDS
from memcached_api.kinds import Kind
from memcached_api.values import child, is_array, is_object
from memcached_webhooks import appservice, memcached
from memcached_webhooks.admission import path_of
from memcached_webhooks.review import CREATE, GroupVersionKind, Judge, Request

INSTALL_MODES: Final = ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
_ANY_IMAGE: Final = "docker.io/library/memcached:1.6.38"


def judges() -> dict[str, Judge]:
    """Our own admission functions, by path."""
    return memcached.judges(_ANY_IMAGE) | appservice.judges()


def owned(subject: Subject) -> Iterator[Fault]:
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
            yield Fault(
                path, "spec.versions", version, f"must be among the owned kinds of the CSV: add {name} {version}"
            )
    for each in subject.owned:
        for field in ("displayName", "description", "resources"):
            if not each.get(field):
                yield of_csv(f"owned[{each['kind']} {each['version']}].{field}", each.get(field), "must say something")


def conversion(subject: Subject) -> Iterator[Fault]:
    """14: all four install modes are declared, and nothing is converted, which only one of them would allow."""
    modes = {mode["type"]: mode.get("supported") for mode in subject.spec.get("installModes", [])}
    for mode in INSTALL_MODES:
        if mode not in modes:
            yield of_csv("spec.installModes", mode, "must be declared, as supported or not")
    if modes.get("AllNamespaces") is not True:
        yield of_csv(
            "spec.installModes[AllNamespaces]", modes.get("AllNamespaces"), "must be true: OLM v1 has no other"
        )
    narrow = [mode for mode in INSTALL_MODES[:-1] if modes.get(mode)]
    for webhook in subject.webhooks:
        if webhook.get("type") == "ConversionWebhook" and narrow:
            name = webhook.get("generateName")
            yield of_csv("webhookdefinitions", name, f"a conversion is allowed in AllNamespaces only, not {narrow[0]}")
    for path, crd in subject.of("CustomResourceDefinition").items():
        if crd["spec"].get("conversion", {}).get("strategy", "None") != "None":
            yield Fault(path, "spec.conversion", crd["spec"]["conversion"], "must go: its webhook is not there yet")


def examples(subject: Subject) -> Iterator[Fault]:
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
        place = f"alm-examples[{each.get('kind')} {child(each, 'metadata', 'name')}]"
        if _gvk(each) not in wanted:
            yield of_csv(place, each.get("apiVersion"), "must be of an owned kind and version")
        else:
            yield from _example(subject, place, each)


def _gvk(each: Object) -> tuple[str, str, str]:
    version = str(each.get("apiVersion", ""))
    return group_of({"apiVersion": version}), version.rpartition("/")[2], str(each.get("kind"))


def _example(subject: Subject, place: str, each: Object) -> Iterator[Fault]:
    if not is_object(each.get("spec")):
        yield of_csv(f"{place}.spec", each.get("spec"), "must be there: the scorecard asks for it")
        return
    for crd in subject.of("CustomResourceDefinition").values():
        for version in crd["spec"]["versions"]:
            if _gvk(each) == (crd["spec"]["group"], version["name"], crd["spec"]["names"]["kind"]):
                unknown = unknown_fields(
                    each["spec"], version["schema"]["openAPIV3Schema"]["properties"]["spec"], "spec"
                )
                yield from (of_csv(f"{place}.{path}", value, "is no field of the CRD") for path, value in unknown)
    for kind in KINDS:
        if (kind.group, kind.name) == (_gvk(each)[0], each["kind"]):
            yield from _refused(kind, place, each)


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


def _refused(kind: Kind[Any], place: str, each: Object) -> Iterator[Fault]:
    """Asked as the API server would ask when the example is created."""
    group, version, name = _gvk(each)
    request = Request("", CREATE, GroupVersionKind(group, version, name), object=each)
    for verb in ("mutate", "validate"):
        refusal = judges()[path_of(verb, kind)](request).refusal
        if refusal:
            yield of_csv(place, each["spec"], f"is refused at admission: {refusal.message}")


def descriptors(subject: Subject) -> Iterator[Fault]:
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
