"""The places of the operator's objects that values of the chart fill."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final

from bundle.images import AGENT, RELATED
from bundle.objects import Object
from chart.objects.nodes import Block, Expression, If, Included, More

LABELS: Final = "memcached-operator.labels"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
COMPONENT: Final = "app.kubernetes.io/component"
SECTIONS: Final = {"controller-manager": "controller", "webhook": "webhook"}
"""The section of the values for each component."""
ANNOTATIONS: Final = "$.Values.commonAnnotations"
WATCHED: Final = "WATCH_NAMESPACE"
KEEP: Final = {"helm.sh/resource-policy": "keep"}
"""Helm does not delete an object with this annotation: with a CRD, the API server deletes all caches."""


def with_places(each: Object) -> Object:
    """A copy of an object in which values of the chart have places."""
    copied = deepcopy(each)
    if copied["kind"] == "CustomResourceDefinition":
        copied["metadata"]["annotations"] = KEEP | copied["metadata"].get("annotations", {})
    copied["metadata"] = _metadata(copied["metadata"])
    if fill := _FILLED.get(copied["kind"]):
        fill(copied)
    return copied


def image(name: str) -> Expression:
    """An image of the values, as one reference."""
    return Expression(f'include "memcached-operator.image" (dict "image" $.Values.{name} "root" $)')


def is_not(value: str, default: str, then: Any) -> If:
    """A node that is written only if a value is not its default."""
    return If(f'ne $.Values.{value} "{default}"', then)


def _metadata(metadata: Object) -> Object:
    """Labels and annotations with those of the values. Helm sets the label managed-by."""
    labels = {key: value for key, value in metadata.get("labels", {}).items() if key != MANAGED_BY}
    found = {key: value for key, value in metadata.items() if key not in ("labels", "annotations")}
    return found | {"labels": {**labels, Included(LABELS): None}, "annotations": _annotations(metadata)}


def _annotations(metadata: Object) -> Any:
    more = {More(ANNOTATIONS): None}
    match metadata.get("annotations"):
        case None:
            return If(ANNOTATIONS, Block(f"toYaml {ANNOTATIONS}"))
        case If(condition, then, None):
            own = {key: If(condition, value) for key, value in then.items()}
            return If(f"or ({condition}) {ANNOTATIONS}", own | more)
        case annotations:
            return {**annotations, **more}


def _deployment(each: Object) -> None:
    section = f"$.Values.{SECTIONS[each['metadata']['labels'][COMPONENT]]}"
    each["spec"]["replicas"] = Expression(f"{section}.replicas")
    template = each["spec"]["template"]
    for place in ("labels", "annotations"):
        template["metadata"][place][More(f"{section}.pod{place.title()}")] = None
    pod = template["spec"]
    (container,) = pod.pop("containers")
    pod |= {
        "priorityClassName": _if_set(f"{section}.priorityClassName", quoted=True),
        "imagePullSecrets": _if_set("$.Values.imagePullSecrets"),
        "nodeSelector": _if_set(f"{section}.nodeSelector"),
        "affinity": _if_set(f"{section}.affinity"),
        "tolerations": _if_set(f"{section}.tolerations"),
        "containers": [_container(container, section)],
    }


def _if_set(value: str, *, quoted: bool = False) -> If:
    return If(value, Expression(f"{value} | quote") if quoted else Block(f"toYaml {value}"))


def _container(container: Object, section: str) -> Object:
    return container | {
        "image": image("image"),
        "imagePullPolicy": Expression("$.Values.image.pullPolicy"),
        "args": [*container["args"], *_arguments(section), More(f"{section}.extraArgs")],
        "env": [_variable(each) for each in container["env"]],
        "resources": Block(f"toYaml {section}.resources"),
    }


def _arguments(section: str) -> list[If]:
    domain = [("clusterDomain", "cluster.local", "--cluster-domain")] if section.endswith("controller") else []
    options = [("logLevel", "info", "--log-level"), ("logFormat", "text", "--log-format"), *domain]
    return [
        is_not(value, default, Expression(f'printf "{flag}=%s" $.Values.{value}')) for value, default, flag in options
    ]


def _variable(each: Object) -> Object:
    match each["name"]:
        case name if name == WATCHED:
            return {"name": name, "value": Expression('join "," $.Values.watchNamespaces | quote')}
        case name if name == AGENT:
            return {"name": name, "value": image("agentImage")}
        case name if name.startswith(RELATED):
            return {"name": name, "value": image(f"{name.removeprefix(RELATED).lower()}Image")}
        case _:
            return each


def _network_policy(each: Object) -> None:
    (rule,) = each["spec"]["ingress"]
    if "from" in rule:
        rule["from"] = Block("toYaml $.Values.networkPolicy.metricsFrom")
    else:
        clients = "$.Values.networkPolicy.admissionFrom"
        each["spec"]["ingress"] = [{"ports": rule["ports"], "from": If(clients, Block(f"toYaml {clients}"))}]


def _rules(each: Object) -> None:
    each["metadata"]["labels"][More("$.Values.monitoring.labels")] = None


def _monitor(each: Object) -> None:
    _rules(each)
    for endpoint in each["spec"]["endpoints"]:
        endpoint["interval"] = _if_set("$.Values.monitoring.interval", quoted=True)


_FILLED: Final[dict[str, Callable[[Object], None]]] = {
    "Deployment": _deployment,
    "NetworkPolicy": _network_policy,
    "PrometheusRule": _rules,
    "ServiceMonitor": _monitor,
}
