"""Generates the ClusterServiceVersion from its manually written base and the rendered objects."""

import base64
import json
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from typing import Any, Final

from bundle.csv.descriptors import spec_descriptors, status_descriptors, title
from bundle.csv.permissions import permissions
from bundle.csv.webhooks import definitions
from bundle.images import related_images
from bundle.objects import Object, Rendered, group_of, name_of
from bundle.release import Release
from crds.registered import REGISTERED, Registered
from memcached_api.registry import KINDS
from memcached_operator.kube.resource import PODS
from pages.security import granted

EXAMPLES: Final = "alm-examples"
SKIP_RANGE: Final = "olm.skipRange"
_ORDER: Final = (
    "displayName", "description", "version", "replaces", "skips", "minKubeVersion", "maturity", "keywords", "provider",
    "maintainers", "links", "icon", "installModes", "customresourcedefinitions", "install", "webhookdefinitions",
    "relatedImages",
)  # fmt: skip


def service_version(rendered: Rendered, release: Release, icon: str, deployments: Sequence[Object]) -> Object:
    """The whole object. `icon` is an SVG; `deployments` are the rendered ones with the release's images."""
    base = deepcopy(rendered.one("ClusterServiceVersion"))
    return {
        "apiVersion": base["apiVersion"],
        "kind": base["kind"],
        "metadata": _metadata(base["metadata"], rendered, release, deployments),
        "spec": _ordered(
            base["spec"] | _description(base["spec"], rendered) | _spec(rendered, release, icon, deployments)
        ),
    }


def _description(base: dict[str, Any], rendered: Rendered) -> dict[str, str]:
    """The base's text with the permissions of the Deployments' accounts instead of `{permissions}`."""
    rules = [rule for account in permissions(rendered) for rule in account["rules"]]
    names = "; ".join(f"{resources} ({verbs})" for resources, verbs in granted(rules))
    return {"description": base["description"].replace("{permissions}", names)}


def _metadata(base: dict[str, Any], rendered: Rendered, release: Release, deployments: Sequence[Object]) -> Object:
    image = deployments[0]["spec"]["template"]["spec"]["containers"][0]["image"]
    annotations = base["annotations"] | {
        EXAMPLES: examples(rendered), "containerImage": image, "createdAt": f"{release.date}T00:00:00Z"
    }  # fmt: skip
    annotations |= {SKIP_RANGE: release.skip_range} if release.skip_range else {}
    return base | {"name": release.name, "annotations": dict(sorted(annotations.items()))}


def _spec(rendered: Rendered, release: Release, icon: str, deployments: Sequence[Object]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "version": release.version,
        "icon": [{"base64data": base64.b64encode(icon.encode()).decode(), "mediatype": "image/svg+xml"}],
        "customresourcedefinitions": {"owned": list(owned(REGISTERED))},
        "install": {
            "strategy": "deployment",
            "spec": {
                "permissions": permissions(rendered),
                "deployments": [_deployment(each) for each in deployments],
            },
        },
        "webhookdefinitions": definitions(rendered),
        "relatedImages": related_images(deployments),
    }
    found |= {"replaces": release.replaces} if release.replaces else {}
    return found | ({"skips": list(release.skips)} if release.skips else {})


def _ordered(spec: dict[str, Any]) -> dict[str, Any]:
    """The fields in reading order; unknown ones are kept at the end."""
    return {key: spec[key] for key in (*_ORDER, *sorted(spec.keys() - set(_ORDER))) if key in spec}


def _deployment(each: Object) -> dict[str, Any]:
    return {"name": name_of(each), "label": each["metadata"]["labels"], "spec": each["spec"]}


def owned(registered: Iterable[Registered]) -> Iterator[dict[str, Any]]:
    """Each kind once per served version. Only the stored one has descriptors: they would be the same."""
    return (_owned(each, version) for each in registered for version in each.kind.versions)


def _owned(registered: Registered, version: str) -> dict[str, Any]:
    kind = registered.kind
    first, name = kind.versions[0], title(kind.name)
    older = f" Has the same fields as {first}, which new objects should use."
    descriptors = {"specDescriptors": spec_descriptors(kind), "statusDescriptors": status_descriptors(kind)}
    return {
        "kind": kind.name,
        "name": f"{kind.plural}.{kind.group}",
        "version": version,
        "displayName": name if version == first else f"{name} ({version})",
        "description": kind.description + ("" if version == first else older),
        "resources": [
            {"kind": each.kind, "name": "", "version": each.api_version} for each in (*registered.owns, PODS)
        ],
        **(descriptors if version == first else {}),
    }


def examples(rendered: Rendered) -> str:
    """The samples as JSON, by kind and version; of each version the shortest first, because consoles show it first."""
    order = {(kind.group, kind.name): place for place, kind in enumerate(KINDS)}
    samples = [each for each in rendered.objects if (group_of(each), each["kind"]) in order]
    samples.sort(key=lambda each: (order[group_of(each), each["kind"]], each["apiVersion"], len(json.dumps(each))))
    return json.dumps(samples, indent=2)
