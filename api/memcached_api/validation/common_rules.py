"""Rules for every kind, each in Python and in CEL."""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from memcached_api import image
from memcached_api.quantity import parse_quantity
from memcached_api.validation.field_errors import quote_if_needed
from memcached_api.validation.rules import Rule, Violation, value_rule
from memcached_api.values import MAX_INT32, nested_field

Entry = Mapping[str, Any]

MIN_SIZE: Final = 1
MAX_SIZE: Final = MAX_INT32  # a Deployment's replicas are an int32
MIN_PORT: Final = 1
MAX_PORT: Final = 65535
MAX_NAME_LENGTH: Final = 52  # characters: leaves 11 of a label's 63 for the hash of a ReplicaSet or a suffix
MAX_SUBDOMAIN_LENGTH: Final = 253  # characters; the limit for a Secret's name

SUBDOMAIN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"  # DNS-1123
LABEL: Final = "^[a-z]([-a-z0-9]*[a-z0-9])?$"  # DNS-1035 label, required for a Service's name
_KNOWN_RESOURCES: Final = ("cpu", "memory", "ephemeral-storage")


def matches(pattern: str, text: str) -> bool:
    """Whether the whole text matches a pattern of the form `^…$`, as CEL's `matches` does."""
    return _compiled(pattern).fullmatch(text) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern[1:-1])


def cel_string(text: str) -> str:
    """The literal of a text in CEL, in single quotes."""
    return "'" + text.replace("'", r"\'") + "'"


def is_cel_type(value: str, name: str) -> str:
    """A CEL expression that tests whether an int-or-string has the type `int` or `string`.

    `in` has a cost of 1. Before 1.34, Kubernetes bases its estimate for `==` on the longest possible string, 3 MB.
    """
    return f"type({value}) in [{name}]"


def cel_quantity(value: str) -> str:
    """A CEL expression for the quantity in an int-or-string.

    Equivalent to `quantity(string(value))` at half the estimated cost, because the string is read once.
    """
    return f"({is_cel_type(value, 'string')} ? quantity({value}) : quantity('0').add({value}))"


def cel_quantity_range(least: str, most: str, condition: str = "") -> str:
    """A CEL expression: whether `self` is a quantity in a range, and meets a condition for the variable `q`.

    The quantity is read once: the API server estimates each `quantity(string(self))` as if the text had 3 MB.
    """
    parts = [f"q.compareTo(quantity('{least}')) >= 0", f"q.compareTo(quantity('{most}')) <= 0", condition]
    return f"isQuantity(string(self)) && [quantity(string(self))].all(q, {' && '.join(filter(None, parts))})"


def _is_name(name: Any) -> bool:
    return isinstance(name, str) and len(name) <= MAX_NAME_LENGTH and matches(LABEL, name)


_NAME_MESSAGE: Final = (
    f"must be a DNS-1035 label of at most {MAX_NAME_LENGTH} characters (lower-case letters, digits and '-', starting "
    "with a letter), because its Service gets the same name; create the object with a valid name"
)

NAME: Final = Rule(
    "metadata.name",
    lambda name: () if _is_name(name) else (Violation("", name, _NAME_MESSAGE),),
    # A name is immutable, so an object that was stored under an older rule must remain editable.
    f"oldSelf.hasValue() || (size(self.metadata.name) <= {MAX_NAME_LENGTH} && self.metadata.name.matches('{LABEL}'))",
    _NAME_MESSAGE,
    field_path=".metadata.name",
)


def size_rule(remedy: str) -> Rule:
    """The rule that `spec.size` is at least 1. `remedy`: what to do instead of setting it to 0."""
    return value_rule(
        "spec.size",
        lambda size: size >= MIN_SIZE,
        f"self >= {MIN_SIZE}",
        f"must be at least {MIN_SIZE}; {remedy}",
    )


def range_rule(path: str, lowest: int, highest: int, remark: str) -> Rule:
    """The rule that an integer is between `lowest` and `highest`. `remark`: the rest of the message, after both."""
    return value_rule(
        path,
        lambda number: lowest <= number <= highest,
        f"self >= {lowest} && self <= {highest}",
        f"must be between {lowest} and {highest}{remark}",
    )


def image_rule(message: str, path: str = "spec.image") -> Rule:
    """The rule that a field is a valid image reference."""
    fits = f"self.matches(r'{image.PATH_WITHIN_LIMIT}') && !self.matches(r'{image.LIBRARY_PATH_TOO_LONG}')"
    cel = f"self.matches(r'{image.PATTERN}') && !self.matches('{image.IMAGE_ID}') && {fits}"
    return value_rule(path, image.is_reference, cel, message)


def _repeated(entries: Sequence[Entry], key: Callable[[Entry], Hashable]) -> Iterator[int]:
    """The indexes of entries that repeat the key of an earlier entry. Entries with a key of None are ignored."""
    seen: set[Hashable] = set()
    for index, entry in enumerate(entries):
        if key(entry) in seen:
            yield index
        elif key(entry) is not None:
            seen.add(key(entry))


def unique_rule(path: str, field: str, same: str, message: str, key: Callable[[Entry], Hashable]) -> Rule:
    """The rule that the entries of a list are unique. `same`: CEL that compares `a` and `b`, which have the field."""

    def violations(entries: Sequence[Entry]) -> Iterator[Violation]:
        return (
            Violation(f"[{index}].{field}", entries[index].get(field), message) for index in _repeated(entries, key)
        )

    is_unique = f"!has(a.{field}) || self.exists_one(b, has(b.{field}) && {same})"
    with_values = cel_string("%s " + message) + f".format([self.filter(a, !({is_unique})).map(a, a.{field})])"
    return Rule(path, violations, f"self.all(a, {is_unique})", message, message_expression=with_values)


def _resource_rules(path: str) -> tuple[Rule, Rule]:
    names = "[" + ", ".join(f"'{name}'" for name in _KNOWN_RESOURCES) + "]"
    message = (
        f"must name one of {', '.join(_KNOWN_RESOURCES)}, hugepages-<size>, or an extended resource such as "
        "example.com/device; correct the resource's name"
    )

    known = f"name in {names} || name.startsWith('hugepages-') || name.contains('/')"

    def unknown(resources: Mapping[str, Any]) -> Iterator[Violation]:
        return (Violation(f"[{name}]", name, message) for name in resources if not _is_resource(name))

    return (
        Rule(
            path,
            unknown,
            f"self.all(name, {known})",
            message,
            message_expression=cel_string("%s " + message) + f".format([self.filter(name, !({known}))])",
        ),
        value_rule(
            f"{path}[*]",
            lambda amount: not str(amount).startswith("-"),
            f"{is_cel_type('self', 'int')} ? self >= 0 : !self.startsWith('-')",
            "must be at least 0, such as 500m or 128Mi",
        ),
    )


def _is_resource(name: str) -> bool:
    return name in _KNOWN_RESOURCES or name.startswith("hugepages-") or "/" in name


def _requests_above_limits(resources: Mapping[str, Any]) -> Iterator[Violation]:
    limits: Mapping[str, Any] = nested_field(resources, "limits") or {}
    requests: Mapping[str, Any] = nested_field(resources, "requests") or {}
    for name, request in requests.items():
        if name in limits and parse_quantity(request) > parse_quantity(limits[name]):
            limit = f"the {quote_if_needed(name)} limit, {limits[name]}"
            message = f"must be at most {limit}; lower this request or raise the limit"
            yield Violation(f".requests[{name}]", request, message)


def resource_rules(path: str) -> tuple[Rule, ...]:
    """The rules about compute resources at a path."""
    return (
        *_resource_rules(f"{path}.limits"),
        *_resource_rules(f"{path}.requests"),
        Rule(
            path,
            _requests_above_limits,
            "!has(self.requests) || !has(self.limits) || self.requests.all(name, !(name in self.limits)"
            f" || {cel_quantity('self.requests[name]')}.compareTo({cel_quantity('self.limits[name]')}) <= 0)",
            "must be at most the limit of the same resource; lower the request or raise the limit",
            message_expression="'%s must be at most the limit of the same resource, of %s; lower the request or raise "
            "the limit'.format([self.requests, self.limits])",
            field_path=".requests",
        ),
    )


RESOURCES: Final = resource_rules("spec.resources")
