"""Parts of Memcached specs at the edges of the rules that repeat those of Kubernetes, on both sides.

Kubernetes denies the children of exactly those that admission denies.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Spec = dict[str, Any]
Table = Mapping[str, tuple[Spec, bool]]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


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


def _node_terms(term: Spec) -> Iterator[Spec]:
    yield {REQUIRED: {"nodeSelectorTerms": [term]}}
    yield {PREFERRED: [{"weight": 1, "preference": term}]}


def _pod_terms(selector: Spec) -> Iterator[Spec]:
    for name in ("labelSelector", "namespaceSelector"):
        term = {"topologyKey": "a", name: selector}
        yield {REQUIRED: [term]}
        yield {PREFERRED: [{"weight": 1, "podAffinityTerm": term}]}


def _selecting(selector: Spec) -> Iterator[Spec]:
    """Specs with the selector in every place."""
    for name in ("podAffinity", "podAntiAffinity"):
        yield from (pod(affinity={name: terms}) for terms in _pod_terms(selector))
    yield pod(topologySpreadConstraints=[_spread(labelSelector=selector)])
    yield from ({"networkPolicy": {"from": [{name: selector}]}} for name in ("podSelector", "namespaceSelector"))


def _spread(**fields: Any) -> Spec:
    return {"maxSkew": 1, "topologyKey": "a", "whenUnsatisfiable": "ScheduleAnyway", **fields}


def _edges() -> Iterator[tuple[Spec, bool]]:
    yield from ((pod(tolerations=[each]), valid) for each, valid in TOLERATIONS)
    yield from ((pod(topologySpreadConstraints=[_spread(**each)]), valid) for each, valid in SPREADS)
    yield from ((pod(securityContext={"seccompProfile": each}), valid) for each, valid in PROFILES)
    yield from _requirements()


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


EDGES: Table = {f"{number} {str(spec)[:100]}": (spec, valid) for number, (spec, valid) in enumerate(_edges())}
