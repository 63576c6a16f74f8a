"""Each remedy in an error of admission, applied as it is written: the violation ends, and no other one begins."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, Final

import pytest

from memcached_api.kind import Kind
from memcached_api.memcached.types import MEMCACHED
from memcached_api.quantity import parse_quantity
from memcached_api.validation.field_errors import FieldError
from support.rule_tables import TABLES

Object = dict[str, Any]
Remedy = Callable[[Object, FieldError, str], None]


def steps(field: str) -> list[str | int]:
    """The steps of a path such as `spec.ports[0].name` or `spec.resources.limits[memory]`."""
    parts = re.findall(r"\[([^\]]*)\]|([^.\[\]]+)", field)
    return [int(key) if key.isdecimal() else key or name for key, name in parts]


def put(obj: Object, field: str, value: Any) -> None:
    """Set a field; None removes it, or the item of a list."""
    *before, last = steps(field)
    found: Any = obj
    for step in before:
        found = found[step] if isinstance(step, int) else found.setdefault(step, {})
    if value is not None:
        found[last] = value
    else:
        found.pop(last, None) if isinstance(last, str) else found.pop(last)


def beside(error: FieldError, name: str) -> str:
    """The field beside the wrong one, or the field with this path."""
    return name if name.startswith("spec.") else f"{error.field.rpartition('.')[0]}.{name}"


def value_of(text: str) -> Any:
    """A value as YAML has it."""
    return int(text) if text.isdecimal() else {"true": True, "false": False}.get(text, text)


def set_it(obj: Object, error: FieldError, text: str) -> None:
    """Set the field itself."""
    put(obj, error.field, value_of(text))


def to(value: Any, name: str = "") -> Remedy:
    """Set the field, or the one with this name or path, to a value; None removes it."""
    return lambda obj, error, _: put(obj, beside(error, name) if name else error.field, value)


def remove(obj: Object, error: FieldError, _: str) -> None:
    """Remove the field, or the item of which it is a part."""
    one_of_two = "one of the two" in error.message and error.field.endswith(("name", "topologyKey"))
    put(obj, error.field.rpartition(".")[0] if one_of_two else error.field, None)


def rename(obj: Object, error: FieldError, text: str) -> None:
    """Give the key of a map another name."""
    path, _, _ = error.field.rpartition("[")
    put(obj, error.field, None)
    put(obj, f"{path}[{text or 'cpu'}]", "1")


def use_two_entries(obj: Object, error: FieldError, _: str) -> None:
    """Move a field of an entry of a list to another entry."""
    path, _, name = error.field.rpartition(".")
    put(obj, error.field, None)
    put(obj, f"{path.rpartition('[')[0]}", [{name: error.value}, *at(obj, path.rpartition("[")[0])])


def remove_entry(obj: Object, error: FieldError, _: str) -> None:
    """Remove one of several entries."""
    path = error.field.rpartition("[")[0]
    at(obj, path).append({"podSelector": {}})
    put(obj, error.field, None)


def at(obj: Object, path: str) -> Any:
    """The value of a field."""
    found: Any = obj
    for step in steps(path):
        found = found[step]
    return found


def nearest(obj: Object, error: FieldError, text: str) -> None:
    """Set the end of a range that is closer."""
    low, high = map(int, text.split(" and "))
    put(obj, error.field, low if error.value < low else high)


def remove_option(obj: Object, error: FieldError, _: str) -> None:
    """Remove the options that an error of the whole list is about."""
    put(obj, error.field, [item for item in at(obj, error.field) if item != error.value])


def exists(obj: Object, error: FieldError, _: str) -> None:
    """Tolerate all taints. Another error names the value, which then has no meaning."""
    put(obj, beside(error, "operator"), "Exists")
    put(obj, beside(error, "value"), None)


def raise_limit(obj: Object, error: FieldError, _: str) -> None:
    """Raise the limit of a request."""
    put(obj, error.field.replace("requests", "limits"), error.value)


def set_least_memory(obj: Object, error: FieldError, _: str) -> None:
    """Set the least memory that the limit can be enough for, and raise the limit if it is not."""
    size = obj["spec"].get("cache", {}).get("maxItemSize", "1Mi")
    least = "64Mi" if "less than 64Mi" in error.message else f"{2 * parse_quantity(size)}"
    put(obj, "spec.cache.memory", least)
    for each in MEMCACHED.validate(obj):
        set_it(obj, each, each.message.split()[4])


SPECIAL: Final[tuple[tuple[str, tuple[Remedy, ...]], ...]] = (
    (r"must have a key of .* such as (\w+)|correct the resource's name", (rename,)),
    (r"begin and end with a letter or a digit", (to("the-web-team"),)),
    (r"must not be 0 together with (spec\S+),.*raise one of them", (to(1), to(1, "spec.rollout.maxUnavailable"))),
    (r"complete or remove this entry", (to({"podSelector": {}}), remove_entry)),
    (r"use two entries", (use_two_entries,)),
    (r"set the key or operator: Exists", (to("a"), exists)),
    (r"must be 0 with spec.identity Stable", (remove,)),
    (r"set it to a file on the node", (to("a.json"), to("RuntimeDefault", "type"))),
    (r"must be set with In or NotIn, and absent otherwise", (to(["a"]), to("Exists", "operator"))),
    (r"one value with Gt or Lt|must have exactly one value", (to(["1"]),)),
    (r"which add to it; set it, or remove them", (to({}), to(None, "matchLabelKeys"))),
    (r"use another port", (to(11311),)),
    (r"must not contain --.*remove one of the two", (remove_option, to(None, "spec.monitoring.insight"))),
    (r"must not contain --.*; remove it", (remove_option,)),
    (r"must be at least 5 times spec.cache.threads plus 12", (to(32),)),
    (r"must be the name of a Secret|must be an object name|must be a key of the object's data", (to("sessions-1"),)),
    (r"must be the name of a Memcached|refer to another Memcached", (to("sessions-1"),)),
    (r"set spec.tls.port, for example to 11212", (to(11212, "spec.tls.port"),)),
    (
        r"half of spec.cache.memory, which is 3Mi; lower this field or raise",
        (to("1536Ki"), to("4Mi", "spec.cache.memory")),
    ),
    (r"use another number for one of the two", (to(30999),)),
    (r"rename one of the two", (to("other"),)),
    (r"number of the port that the container listens on, without quotes", (to(8080),)),
    (r"must be a supported field: ([\w.]+),", (set_it,)),
    (r"must be limits. or requests. followed by", (to("limits.cpu"),)),
    (r"must set exactly one of", (to({"fieldRef": {"fieldPath": "metadata.name"}}),)),
    (r"use spec[\w.]+(?:: false)?(?:;|$)", (remove,)),
    (r"set clientAuth|or set spec.tls.clientAuth", (remove, to("Require", "spec.tls.clientAuth"))),
    (r"or set (effect): NoExecute", (remove, to("NoExecute", "effect"))),
    (r"or set whenUnsatisfiable: DoNotSchedule", (remove, to("DoNotSchedule", "whenUnsatisfiable"))),
    (r"or set operator: Equal", (remove, to("Equal", "operator"))),
    (r"remove it or set spec.monitoring$", (remove, to({}, "spec.monitoring"))),
    (r"or remove spec.networkPolicy", (remove, to(None, "spec.networkPolicy"))),
    (r"set spec.tls, or remove it", (remove, to({"secretName": "a"}, "spec.tls"))),
    (r"must be at least spec.cache.extstore.size with volume EmptyDir", (to("4Gi"), remove)),
    (r"with spec.cache.extstore; raise this limit or lower", (to("1Gi"), to("64Mi", "spec.cache.memory"))),
    (r"or lower spec.cache.threads", (to(330), to(1, "spec.cache.threads"))),
    (r"set it to false, or lower the size", (to(False, "spec.service.perPod"), to(100))),
    (r"or identity Pooled", (to(1000), to("Pooled", "spec.identity"))),
    (r"must be a supported option of memcached", (to("--disable-cas"), remove)),
)
"""What the remedies of an error say, by a part of its message. Each is tried by itself."""

GENERAL: Final[tuple[tuple[str, Remedy], ...]] = (
    (r"must be at least (\w+)", set_it),
    (r"set at least (\w+)", set_it),
    (r"must be between (\d+ and \d+)", nearest),
    (r"must be at most (?:the \w+ limit, )?(\d\w*)", set_it),
    (r"must be (true|0)\b", set_it),
    (r"the default is (\w+)", set_it),
    (r"\buse (11211), its default", set_it),
    (r"such as (\S+?)(?:;| or |, or |$)", set_it),
    (r"raise this limit or lower spec.cache.memory", to("2Mi", "spec.cache.memory")),
    (r"lower this request or raise the limit", raise_limit),
    (r"with spec.cache.memory set, a lower limit can be enough", set_least_memory),
    (r"\b(?:remove|omit) (?:it|them|the field|the item|this (?:key|entry|item)|one of the two)\b", remove),
)


def remedies(error: FieldError) -> Iterator[tuple[Remedy, str]]:
    """The remedies in an error, and what follows their words."""
    for pattern, acts in SPECIAL:
        if match := re.search(pattern, error.message):
            yield from ((act, match[1] or "" if match.re.groups else "") for act in acts)
            return
    for pattern, act in GENERAL:
        if match := re.search(pattern, error.message):
            yield act, match[1] if match.re.groups else ""


def violations() -> Iterator[tuple[str, Kind[Any], Object, FieldError]]:
    """Each violation of the tables, the first of each message."""
    seen = set[str]()
    for tables in TABLES:
        for invalid in tables.rules:
            for error in tables.kind.validate(tables.obj(invalid.spec)):
                if error.message not in seen:
                    seen.add(error.message)
                    name = f"{tables.kind.name}: {error.field}: {error.message}"
                    yield name, tables.kind, tables.obj(invalid.spec), error


VIOLATIONS: Final = {name: case for name, *case in violations()}


def errors(kind: Kind[Any], obj: Object) -> Counter[tuple[str, str, str]]:
    """The errors of an object, without the positions of items."""
    return Counter((re.sub(r"\[\d+\]", "", each.field), str(each.value), each.message) for each in kind.validate(obj))


@pytest.mark.parametrize(("kind", "obj", "error"), VIOLATIONS.values(), ids=VIOLATIONS.keys())
def test_each_remedy_ends_its_violation(kind: Kind[Any], obj: Object, error: FieldError) -> None:
    before, found = errors(kind, obj), [*remedies(error)]
    assert found, error.message
    for act, text in found:
        fixed = deepcopy(obj)
        act(fixed, error, text)
        after = errors(kind, fixed)
        assert after < before, (error.message, text, fixed["spec"], after - before)
