"""The rules of a cache → the part of config/admission-policies/monitoring.yaml that follows from them."""

import re
from collections.abc import Iterator
from typing import Any, Final

from memcached_operator.memcached.alerts.caches import GROUP, rules_of

MATCHERS: Final = 'namespace="NAMESPACE",cache="CACHE"'
"""In the expressions of `rules_of` for these two names."""
_PLACES: Final = {
    "NAMESPACE": "request.namespace",
    "CACHE": "variables.cache",
}
_PART: Final = re.compile(r"(?<=\n  - name: group\n    expression: \|-\n)(?:      .*\n)+")


def with_alerts(text: str) -> str:
    """The text of the policy with the rules. Raises ValueError if it has no place for them."""
    body = "".join(f"      {line}\n" for line in _lines(rules_of("NAMESPACE", "CACHE")))
    text, count = _PART.subn(lambda _: body, text)
    if not count:
        raise ValueError("config/admission-policies/monitoring.yaml has no variable `group`")
    return text


def _lines(rules: list[dict[str, Any]]) -> Iterator[str]:
    """A map in CEL, a line for each field of a rule. All values are dynamic, as a literal has only one type of them."""
    yield f"{{'name': dyn('{GROUP}'), 'rules': dyn(["
    for number, rule in enumerate(rules):
        *fields, last = [f"'{name}': dyn({_cel(value)})" for name, value in rule.items()]
        yield "{"
        yield from (f"{field}," for field in fields)
        yield last
        yield "}" if number == len(rules) - 1 else "},"
    yield "])}"


def _cel(value: Any) -> str:
    """A text, or a map of texts, in CEL."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_cel(key)}: {_cel(each)}' for key, each in value.items())}}}"  # pyright: ignore[reportUnknownVariableType]
    if value in _PLACES:
        return _PLACES[value]
    quoted = "'" + str(value).replace("\\", "\\\\").replace("'", "\\'") + "'"
    return quoted.replace(MATCHERS, "' + variables.matchers + '")
