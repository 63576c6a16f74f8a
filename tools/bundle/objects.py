"""Kubernetes objects as plain values."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from bundle.errors import BundleError
from memcached_api.values import is_object

Object = dict[str, Any]


LOADER: Final[type[yaml.SafeLoader | yaml.CSafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, ten times faster, if PyYAML was built with it."""


def documents(text: str, origin: str) -> list[Any]:
    """The documents of a YAML stream, without empty ones. Raises BundleError with `origin` if it is not YAML."""
    try:
        return [each for each in yaml.load_all(text, LOADER) if each is not None]
    except yaml.YAMLError as error:
        raise BundleError(f"{origin} is not YAML: {' '.join(str(error).split())}") from error


def parse(text: str, origin: str) -> list[Object]:
    """The Kubernetes objects of a YAML stream. Raises BundleError with `origin` for any other document."""
    found = documents(text, origin)
    for each in found:
        if not is_object(each) or not {"apiVersion", "kind", "metadata"} <= each.keys():
            raise BundleError(f"{origin} contains a document without apiVersion, kind or metadata")
    return found


def mapping(text: str, origin: str) -> dict[str, Any]:
    """A YAML mapping; empty for an empty text. Raises BundleError for any other document."""
    found = documents(text, origin) or [{}]
    if len(found) != 1 or not is_object(found[0]):
        raise BundleError(f"{origin} must contain one mapping")
    return found[0]


def name_of(each: Object) -> str:
    return each["metadata"]["name"]


def group_of(each: Object) -> str:
    """The API group; empty for the core one."""
    group, slash, _ = each["apiVersion"].partition("/")
    return group if slash else ""


def containers(deployments: Iterable[Object]) -> Iterator[Object]:
    """All containers of Deployments, which may be objects or entries of a ClusterServiceVersion."""
    for each in deployments:
        pod = each["spec"]["template"]["spec"]
        yield from pod.get("initContainers", [])
        yield from pod["containers"]


@dataclass(frozen=True)
class Rendered:
    """kustomize's output for config/manifests."""

    objects: Sequence[Object]

    def of(self, *kinds: str) -> list[Object]:
        """All objects of some kinds, in kustomize's order."""
        return [each for each in self.objects if each["kind"] in kinds]

    def one(self, kind: str) -> Object:
        """The only object of a kind. Raises BundleError if there is none, or more than one."""
        found = self.of(kind)
        if len(found) != 1:
            raise BundleError(f"want one {kind} in config/manifests, got {len(found)}: see its kustomization.yaml")
        return found[0]
