"""What a user writes to have OLM install the operator."""

from typing import Final

from bundle.release import PACKAGE

NAMESPACE: Final = "memcached-operator-system"
"""Where the operator is installed: the namespace that the ClusterServiceVersion suggests."""


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
