"""Kinds → the webhook configurations."""

from collections.abc import Sequence
from typing import Any

from memcached_api.kind import Kind
from memcached_webhooks.admission import path_of


def configurations(kinds: Sequence[Kind[Any]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The mutating and the validating configuration, with one webhook for each kind."""
    # Defaulting is idempotent, and runs again if a later webhook changes the object.
    mutating = [_webhook("mutate", kind, {"reinvocationPolicy": "IfNeeded"}) for kind in kinds]
    return (
        _configuration("Mutating", mutating),
        _configuration("Validating", [_webhook("validate", kind, {}) for kind in kinds]),
    )


def _configuration(type_: str, webhooks: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{type_}WebhookConfiguration",
        "metadata": {
            "name": f"{type_.lower()}-webhook-configuration",
            "labels": {
                "app.kubernetes.io/name": "memcached-operator",
                "app.kubernetes.io/component": "webhook",
                "app.kubernetes.io/managed-by": "kustomize",
            },
        },
        "webhooks": webhooks,
    }


def _webhook(verb: str, kind: Kind[Any], more: dict[str, Any]) -> dict[str, Any]:
    service = {"name": "webhook-service", "namespace": "system", "path": path_of(verb, kind), "port": 443}
    return {
        "name": f"{verb[0]}{kind.name.lower()}.{kind.group}",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": service},
        "failurePolicy": "Fail",
        # The rules list every served version, so the API server converts no objects for the webhook.
        "matchPolicy": "Exact",
        "sideEffects": "None",
        "timeoutSeconds": 5,
        **more,
        # Foreground and orphan deletion update the object; they must not depend on the webhook.
        "matchConditions": [{"name": "not-being-deleted", "expression": "!has(object.metadata.deletionTimestamp)"}],
        # Only our own kinds and no subresources: status writes, `kubectl scale`, deletions and all other kinds work
        # while the admission process is down. The CRD's schema and CEL rules apply to them all the same.
        "rules": [
            {
                "apiGroups": [kind.group],
                "apiVersions": list(kind.versions),
                "operations": ["CREATE", "UPDATE"],
                "resources": [kind.plural],
                "scope": "Namespaced",
            }
        ],
    }
