"""The objects of an OLM installation, as JSON for kubectl. Pure functions."""

from typing import Any

from olm.components import NAMESPACE

OPERATORS = "operators"
"""The usual namespace of operators that watch all namespaces."""
GROUP = "operators.coreos.com"
Object = dict[str, Any]


def foundation() -> list[Object]:
    """Namespaces, the OperatorGroups in them, and OLM's settings."""
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OPERATORS}},
        operator_group(OPERATORS, "global-operators", {}),
        operator_group(NAMESPACE, "olm-operators", {"targetNamespaces": [NAMESPACE]}),
        {"apiVersion": f"{GROUP}/v1", "kind": "OLMConfig", "metadata": {"name": "cluster"}},
    ]


def operator_group(namespace: str, name: str, spec: Object) -> Object:
    """An OperatorGroup, which selects the namespaces that the operators of a namespace watch."""
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "OperatorGroup",
        "metadata": {"name": name, "namespace": namespace},
        "spec": spec,
    }


def catalog_source(name: str, namespace: str, address: str) -> Object:
    """A CatalogSource with the address of its registry."""
    return {
        "apiVersion": f"{GROUP}/v1alpha1",
        "kind": "CatalogSource",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"sourceType": "grpc", "address": address, "displayName": name, "publisher": "memcached-operator"},
    }


def as_list(objects: list[Object]) -> Object:
    """Several objects as one document."""
    return {"apiVersion": "v1", "kind": "List", "items": objects}
