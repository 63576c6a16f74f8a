"""Rules about labels and annotations that the operator writes into other objects, each in Python and in CEL."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from memcached_api.annotations import OWN_PREFIX
from memcached_api.validation.common_rules import cel_string, matches
from memcached_api.validation.rules import Rule, Violation, value_rule

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""The annotation of `kubectl apply`. The operator does not cache it, so it could not see that it is set."""

LABEL_PREFIX: Final = "app.kubernetes.io/"
"""The prefix of OWN_LABELS. Users may set other labels with it."""

OWN_LABELS: Final = tuple(f"{LABEL_PREFIX}{name}" for name in ("component", "instance", "managed-by", "name"))
"""The labels that the operator sets."""

DEPLOYMENT_PREFIX: Final = "deployment.kubernetes.io/"
"""The prefix of the annotations that the controller of Deployments sets, such as the revision."""

ROLLBACK: Final = "deprecated.deployment.rollback.to"
"""The annotation with which the controller of Deployments replaces the pod template by an earlier one. It removes the
annotation then, so the operator would set it again."""

_OTHERS: Final = "the operator, kubectl or Kubernetes"


def _key_rule(path: str, holds: Callable[[str], bool], cel: str, message: str) -> Rule:
    """The rule that a map has only keys for which this holds. `cel`: that it does not hold for `k`, a short name."""

    def violations(entries: Mapping[str, Any]) -> Iterable[Violation]:
        return (Violation(f"[{key}]", value, message) for key, value in entries.items() if not holds(key))

    return Rule(
        path,
        violations,
        f"self.all(k, !({cel}))",
        message,
        message_expression=cel_string("%s " + message) + f".format([self.filter(k, {cel})])",
    )


def reserved_rule(
    path: str, owner: str, keys: tuple[str, ...] = (), prefixes: tuple[str, ...] = (), remedy: str = ""
) -> Rule:
    """The rule that a map has none of these keys, and none with these prefixes. `owner`: who sets them.

    `remedy`: the end of the message, after the instruction to remove the key.
    """
    return _key_rule(
        path,
        lambda key: key not in keys and not key.startswith(prefixes),
        " || ".join([*_one_of(keys), *(f"k.startsWith('{each}')" for each in prefixes)]),
        f"must not be set, because {owner} sets it; remove this key{remedy}",
    )


def _one_of(keys: tuple[str, ...]) -> Iterable[str]:
    """CEL that `k` is one of the keys. OWN_LABELS is written without its repeated prefix: it is in many rules."""
    if keys != OWN_LABELS:
        return (f"k == '{key}'" for key in keys)
    names = [key.removeprefix(LABEL_PREFIX) for key in keys]
    return (f"k.startsWith('{LABEL_PREFIX}') && k.substring({len(LABEL_PREFIX)}) in {names}",)


def own_rule(path: str, keys: tuple[str, ...] = ()) -> Rule:
    """The rule that a map has none of the operator's keys: none of these, and none with OWN_PREFIX."""
    return reserved_rule(path, "the operator", keys, (OWN_PREFIX,))


MAX_DOMAIN: Final = 253
"""Characters before the `/` of a key, as in Kubernetes."""
_SUBDOMAIN: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME: Final = "[A-Za-z0-9]([-_.A-Za-z0-9]{0,61}[A-Za-z0-9])?"
_FOLDED: Final = r"\u0130\u212a"
"""Letters whose lower case is ASCII in Go. Kubernetes ignores the case of annotation keys, and so accepts them."""


def _any_case(pattern: str) -> str:
    return pattern.replace("A-Z", "").replace("a-z", f"A-Za-z{_FOLDED}")


def _syntax_rule(path: str, prefix: str, name: str) -> Rule:
    """The rule that the keys of a map are names, or a DNS-1123 subdomain, `/` and a name."""
    key = f"^({prefix}/)?{name}$"
    return _key_rule(
        path,
        lambda text: text.find("/") <= MAX_DOMAIN and matches(key, text),
        f"k.indexOf('/') > {MAX_DOMAIN} || !k.matches('{key}')",
        "must have a key of at most 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends, such as "
        "team or example.com/team",
    )


def label_key_rule(path: str) -> Rule:
    """The rule about the syntax of the keys of labels."""
    return _syntax_rule(path, _SUBDOMAIN, _NAME)


def annotation_key_rule(path: str) -> Rule:
    """The rule about the syntax of the keys of annotations."""
    return _syntax_rule(path, _any_case(_SUBDOMAIN), _any_case(_NAME))


def label_value_rule(path: str) -> Rule:
    """The rule about the values of labels."""
    pattern = f"^({_NAME})?$"
    return value_rule(
        f"{path}[*]",
        lambda value: matches(pattern, value),
        f"self.matches('{pattern}')",
        "must have at most 63 letters, digits, '-', '_' and '.', and begin and end with a letter or a digit",
    )


def inherited_rules(path: str) -> tuple[Rule, ...]:
    """The rules about the labels and annotations that all children inherit, at the path of their section.

    One rule for all reserved annotations: each rule has a part of the size of the CRD and of its budget.
    """
    labels, annotations = f"{path}.labels", f"{path}.annotations"
    return (
        own_rule(labels, OWN_LABELS),
        reserved_rule(annotations, _OTHERS, (LAST_APPLIED, ROLLBACK), (OWN_PREFIX, DEPLOYMENT_PREFIX)),
        label_key_rule(labels),
        annotation_key_rule(annotations),
        label_value_rule(labels),
    )
