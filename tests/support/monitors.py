"""The API monitoring.coreos.com, which a cluster may lack: CRDs that accept everything."""

from memcached_operator.kube.resource import Object, Resource


def monitor_crd(resource: Resource) -> Object:
    """A CRD of ServiceMonitors or PodMonitors, without the schema of the Prometheus operator."""
    version: Object = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": {"kind": resource.kind, "plural": resource.plural},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
