"""Parts of Memcached specs at the edges of the rules that repeat those of Kubernetes, on both sides.

Kubernetes denies the children of exactly those that admission denies.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

Spec = dict[str, Any]
Table = Mapping[str, tuple[Spec, bool]]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
LONG = "a" * 63
DOMAIN = ".".join(["a" * 63] * 3 + ["a" * 61])
"""A domain of 253 characters."""


def pod(**spec: Any) -> Spec:
    """A spec with fields of the pod spec."""
    return {"podTemplate": {"spec": spec}}


TOLERATIONS: tuple[tuple[Spec, bool], ...] = (
    ({"operator": "Exists"}, True),
    ({"key": "", "operator": "Exists", "value": ""}, True),
    ({"key": "a"}, True),
    ({"key": "a", "operator": None, "value": "b"}, True),
    ({"key": "a", "operator": "Equal"}, True),
    ({}, False),
    ({"key": "", "operator": "Equal"}, False),
    ({"value": "b"}, False),
    ({"key": "a", "operator": "Exists", "value": "b"}, False),
    ({"key": "a", "effect": "NoExecute", "tolerationSeconds": 0}, True),
    ({"key": "a", "effect": "NoExecute", "tolerationSeconds": -1}, True),
    ({"key": "a", "effect": "NoSchedule", "tolerationSeconds": 0}, False),
    ({"key": "a", "tolerationSeconds": 1}, False),
    ({"key": "a", "tolerationSeconds": None}, True),
)

SPREADS: tuple[tuple[Spec, bool], ...] = (
    ({"whenUnsatisfiable": "DoNotSchedule", "minDomains": 1}, True),
    ({"whenUnsatisfiable": "ScheduleAnyway", "minDomains": None}, True),
    ({"whenUnsatisfiable": "ScheduleAnyway", "minDomains": 1}, False),
    # The operator sets the selector that Kubernetes requires here.
    ({"whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": ["pod-template-hash"]}, True),
    ({"whenUnsatisfiable": "ScheduleAnyway", "matchLabelKeys": ["a"], "labelSelector": {}}, True),
)

PROFILES: tuple[tuple[Spec, bool], ...] = (
    ({"type": "RuntimeDefault"}, True),
    ({"type": "RuntimeDefault", "localhostProfile": None}, True),
    ({"type": "RuntimeDefault", "localhostProfile": ""}, False),
    ({"type": "Localhost", "localhostProfile": "a.json"}, True),
    ({"type": "Localhost", "localhostProfile": ""}, True),
    ({"type": "Localhost"}, False),
)

VALUES: tuple[tuple[Spec, bool], ...] = (
    *(({"operator": operator, "values": ["a"]}, True) for operator in ("In", "NotIn")),
    *(({"operator": operator}, False) for operator in ("In", "NotIn")),
    ({"operator": "In", "values": []}, False),
    ({"operator": "In", "values": ["a", "b"]}, True),
    *(({"operator": operator}, True) for operator in ("Exists", "DoesNotExist")),
    *(({"operator": operator, "values": ["a"]}, False) for operator in ("Exists", "DoesNotExist")),
    ({"operator": "Exists", "values": []}, True),
)

COMPARISONS: tuple[tuple[Spec, bool], ...] = tuple(
    ({"operator": operator, "values": values}, len(values) == 1)
    # Kubernetes accepts a value that is not a number. No node matches it.
    for operator, values in (("Gt", ["1"]), ("Lt", ["x"]), ("Gt", []), ("Lt", ["1", "2"]))
)

FIELDS: tuple[tuple[Spec, bool], ...] = (
    *(({"operator": operator, "values": ["a"]}, True) for operator in ("In", "NotIn")),
    ({"operator": "In", "values": ["a", "b"]}, False),
    ({"operator": "NotIn"}, False),
    ({"operator": "Exists"}, False),
    ({"operator": "Gt", "values": ["1"]}, False),
)

LABEL_KEYS: tuple[tuple[Spec, bool], ...] = (
    ({"matchLabelKeys": [], "mismatchLabelKeys": []}, True),
    *(({name: ["a"]}, False) for name in ("matchLabelKeys", "mismatchLabelKeys")),
    *(({"labelSelector": {}, name: ["a"]}, True) for name in ("matchLabelKeys", "mismatchLabelKeys")),
    ({"labelSelector": {}, "matchLabelKeys": ["a", "b"], "mismatchLabelKeys": ["b"]}, False),
    ({"labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["b"], "mismatchLabelKeys": ["a"]}, True),
)

KEYS: tuple[tuple[str, bool], ...] = (
    *((key, True) for key in ("a", "A", "a.b_c-d", "9", LONG, f"{DOMAIN}/{LONG}", "a/b", "0.a/B", f"{LONG}a/b")),
    *((key, False) for key in ("", "/", "a/", "/a", "a/b/c", "-a", "a.", f"{LONG}a", f"a{DOMAIN}/b", f"a/{LONG}a")),
    *((key, False) for key in ("a..b/c", "a b", "a\n", "ä", "-a/b", "a_b/c", "a" * 100_000)),
)

ANY_CASE: tuple[str, ...] = ("A/b", "Example.com/a", "\u212a", "\u0130.a/b")
"""Keys that are valid only for annotations."""

LABEL_VALUES: tuple[tuple[str, bool], ...] = (
    *((value, True) for value in ("", "a", "A.b_c-9", LONG)),
    *((value, False) for value in ("-a", "a-", ".", "a b", "a/b", "ä", "a\n")),
)

CIDRS: tuple[tuple[str, bool], ...] = (
    *((cidr, True) for cidr in ("0.0.0.0/0", "192.0.2.1/32", "255.255.255.255/8", "010.0.0.0/008")),
    *((cidr, True) for cidr in ("::/0", "2001:DB8::/32", "::1/128", "1:2:3:4:5:6:7:8/64", "1:2:3:4:5:6:7::/64")),
    *((cidr, True) for cidr in ("::ffff:192.0.2.1/96", "1:2:3:4:5:6:192.0.2.1/128", "1::192.0.2.1/096", "00001::/16")),
    *((cidr, False) for cidr in ("", "192.0.2.0", "192.0.2/24", "192.0.2.0/33", "256.0.0.0/8", "192.0.2.0/", "a")),
    *((cidr, False) for cidr in ("::/129", ":/0", ":::/0", "1::2::3/64", "1:2:3:4:5:6:7:8::/64", "1:2:3/64", "g::/16")),
    *((cidr, False) for cidr in ("1:2:3:4:5:6:7:192.0.2.1/128", "12345::/16", "fe80::1%eth0/64", "192.0.2.0/24\n")),
)


def _node_terms(term: Spec) -> Iterator[Spec]:
    yield {REQUIRED: {"nodeSelectorTerms": [term]}}
    yield {PREFERRED: [{"weight": 1, "preference": term}]}


def _with_term(**fields: Any) -> Iterator[Spec]:
    """Specs with a term of an affinity in every place."""
    term = {"topologyKey": "a", **fields}
    for name in ("podAffinity", "podAntiAffinity"):
        yield pod(affinity={name: {REQUIRED: [term]}})
        yield pod(affinity={name: {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}})


def _selecting(selector: Spec) -> Iterator[Spec]:
    """Specs with the selector in every place."""
    for name in ("labelSelector", "namespaceSelector"):
        yield from _with_term(**{name: selector})
    yield pod(topologySpreadConstraints=[_spread(labelSelector=selector)])
    for peers, name in product(("from", "metricsFrom"), ("podSelector", "namespaceSelector")):
        yield {"monitoring": {}, "networkPolicy": {peers: [{name: selector}]}}


def _spread(**fields: Any) -> Spec:
    return {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", **fields}


def _edges() -> Iterator[tuple[Spec, bool]]:
    yield from ((pod(tolerations=[each]), valid) for each, valid in TOLERATIONS)
    yield from ((pod(topologySpreadConstraints=[_spread(**each)]), valid) for each, valid in SPREADS)
    yield from ((pod(securityContext={"seccompProfile": each}), valid) for each, valid in PROFILES)
    yield from _requirements()
    yield from ((spec, valid) for each, valid in LABEL_KEYS for spec in _with_term(**each))
    for path in (("podTemplate", "metadata"), ("service",), ("inheritedMetadata",)):
        yield from _metadata(*path)
    yield from (({"networkPolicy": {"from": [{"ipBlock": {"cidr": cidr}}]}}, valid) for cidr, valid in CIDRS)


def _requirements() -> Iterator[tuple[Spec, bool]]:
    for each, valid in VALUES:
        for spec in _selecting({"matchExpressions": [{"key": "a", **each}]}):
            yield spec, valid
    for each, valid in (*VALUES, *COMPARISONS):
        for terms in _node_terms({"matchExpressions": [{"key": "a", **each}]}):
            yield pod(affinity={"nodeAffinity": terms}), valid
    for each, valid in FIELDS:
        for terms in _node_terms({"matchFields": [{"key": "metadata.name", **each}]}):
            yield pod(affinity={"nodeAffinity": terms}), valid


def _metadata(*path: str) -> Iterator[tuple[Spec, bool]]:
    for key, valid in (*KEYS, *((key, False) for key in ANY_CASE)):
        yield _at(path, "labels", key, "a"), valid
    for key, valid in (*KEYS, *((key, True) for key in ANY_CASE)):
        yield _at(path, "annotations", key, " "), valid
    for value, valid in LABEL_VALUES:
        yield _at(path, "labels", "a", value), valid


def _at(path: tuple[str, ...], *steps: str) -> Spec:
    *names, value = (*path, *steps)
    found: Any = value
    for name in reversed(names):
        found = {name: found}
    return found


EDGES: Table = {f"{number} {str(spec)[:100]}": (spec, valid) for number, (spec, valid) in enumerate(_edges())}
