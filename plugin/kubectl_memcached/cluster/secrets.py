"""Read what is known of Secrets, without their content."""

from collections.abc import Iterable
from typing import Final

from kubectl_memcached.cluster.kubectl import Kubectl
from kubectl_memcached.errors import PluginError
from kubectl_memcached.model import units
from kubectl_memcached.model.secrets import Secret

OUTPUT: Final = "-o=jsonpath={.immutable}/{.metadata.creationTimestamp}"
"""kubectl prints only these fields, so that the content reaches neither the plugin nor its output."""


def read(kubectl: Kubectl, names: Iterable[str], namespace: str) -> dict[str, Secret]:
    """What is known of Secrets, by name. One that cannot be read is left out: advice about it is optional."""
    return {name: found for name in names if (found := _read(kubectl, name, namespace)) is not None}


def _read(kubectl: Kubectl, name: str, namespace: str) -> Secret | None:
    if name.startswith("-"):
        return None
    try:
        output = kubectl.run(f"read Secret {name}", "get", "secret", name, OUTPUT, namespace=namespace)
    except PluginError:
        return None
    immutable, _, created = output.strip().partition("/")
    return Secret(immutable == "true", units.seconds(created))
