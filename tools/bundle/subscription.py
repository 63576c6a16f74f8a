"""The manifests with which a user installs the operator through OLM."""

from typing import Final

from bundle.release import PACKAGE

NAMESPACE: Final = "memcached-operator-system"
"""The operator's namespace, as suggested by the ClusterServiceVersion."""


def subscription(source: str, source_namespace: str, channel: str, *more: str) -> str:
    """Namespace, OperatorGroup (all namespaces) and Subscription as YAML; `more` are lines of its spec."""
    return f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
---
apiVersion: operators.coreos.com/v1
kind: OperatorGroup
metadata:
  name: {PACKAGE}
  namespace: {NAMESPACE}
spec: {{}}
---
apiVersion: operators.coreos.com/v1alpha1
kind: Subscription
metadata:
  name: {PACKAGE}
  namespace: {NAMESPACE}
spec:
  name: {PACKAGE}
  channel: {channel}
  source: {source}
  sourceNamespace: {source_namespace}
{"".join(f"  {line}{chr(10)}" for line in more)}"""
