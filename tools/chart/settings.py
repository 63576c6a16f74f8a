"""The values of the chart. values.yaml, its schema and the tables of the docs are generated from this list."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bundle.images import related_variables, repository
from bundle.objects import Object, Rendered
from chart.objects.places import COMPONENT, SECTIONS
from chart.schema import (
    BOOLEAN,
    DIGEST,
    DOMAIN,
    IMAGE_TAG,
    LABELS,
    NAMESPACES,
    REPLICAS,
    REPOSITORY,
    STRING,
    STRINGS,
    Schema,
    choice,
    kubernetes,
    many,
)  # fmt: skip
from chart.sources import LEADING, Sources
from memcached_api.kubernetes import LocalObjectReference, ResourceRequirements
from memcached_api.memcached.types import MEMCACHED
from memcached_api.scheduling import Affinity, Toleration
from memcached_api.shared.pod_template import NetworkPolicyPeer
from memcached_operator.parts.dns import CLUSTER_DOMAIN
from memcached_process.logs import FORMATS, LEVELS


@dataclass(frozen=True)
class Setting:
    """One value: its path, its default, its description in Markdown, and its JSON schema."""

    path: str
    default: Any
    description: str
    schema: Schema


SECTION_TEXTS: Final = {
    "image": "The image of the controller and the webhook.",
    "agentImage": "The image of the agents in the pods of caches, for objects without `spec.agent.image`.",
    "memcachedImage": "The image of memcached, for objects without `spec.image`.",
    "controller": "The controller, which reconciles the objects.",
    "webhook": "The admission webhook, which sets defaults and rejects invalid objects.",
    "certificates": "The serving certificate of the webhook.",
    "crds": "The CustomResourceDefinitions.",
    "admissionPolicies": "The ValidatingAdmissionPolicies.",
    "podDisruptionBudgets": "The PodDisruptionBudgets of the controller and the webhook.",
    "networkPolicy": "The NetworkPolicies of the operator's pods.",
    "monitoring": "The ServiceMonitor, the PrometheusRule and the dashboards.",
}
"""The description of each section."""


def settings(sources: Sources, images: tuple[str, str], version: str) -> list[Setting]:
    """All values, in the order of values.yaml. `images`: those of the operator and the agent in this release."""
    operator = Rendered(sources["operator"])
    deployments = {SECTIONS[each["metadata"]["labels"][COMPONENT]]: each for each in operator.of("Deployment")}
    (manager,) = deployments["controller"]["spec"]["template"]["spec"]["containers"]
    return [
        *_image("image", images[0], version),
        Setting("image.pullPolicy", manager["imagePullPolicy"], "When nodes pull the image.",
                choice("Always", "IfNotPresent", "Never")),
        *_image("agentImage", images[1], version),
        *_image("memcachedImage", related_variables(manager)["RELATED_IMAGE_MEMCACHED"]),
        Setting("imagePullSecrets", [], "Secrets of the release's namespace for pulling the operator's image, as "
                "`- name: registry`. Caches use their own Secrets, in `spec.imagePullSecrets`.",
                many(kubernetes(LocalObjectReference))),
        *_scope(),
        *_components(deployments),
        *_add_ons(sources),
        *_common(),
    ]  # fmt: skip


def _image(section: str, image: str, version: str = "") -> Iterator[Setting]:
    name, digest = image.partition("@")[0], image.partition("@")[2]
    place = repository(name)
    tag = name.removeprefix(place).removeprefix(":")
    text = "Tag. If empty, the version of the operator." if version else "Tag."
    yield Setting(f"{section}.repository", place, "Registry and repository.", REPOSITORY)
    yield Setting(
        f"{section}.tag", "" if tag == version else tag, text, IMAGE_TAG | ({} if version else {"minLength": 1})
    )
    yield Setting(f"{section}.digest", digest, "Digest, such as `sha256:…`. It takes precedence over the tag.", DIGEST)


def _scope() -> Iterator[Setting]:
    kinds = [kind.name.lower() for kind in LEADING]
    alone = MEMCACHED.name.lower()
    yield Setting(
        "kinds",
        kinds,
        f"The kinds that the operator serves: all, or only `{alone}`, which includes MemcachedProxy. The "
        "CustomResourceDefinition, webhooks, roles and permissions of a kind that you leave out are not installed. "
        "Objects of a kind that you remove later stay, but are not reconciled.",
        {"oneOf": [{**many(choice(*kinds)), "uniqueItems": True, "minItems": len(kinds)}, {"const": [alone]}]},
    )
    yield Setting(
        "watchNamespaces",
        [],
        "The namespaces in which the operator reconciles objects. If empty, all namespaces. If you list "
        "namespaces, the controller has permissions on objects of these kinds only there, through a RoleBinding in "
        "each. The namespaces must exist.",
        NAMESPACES,
    )
    yield Setting("clusterDomain", CLUSTER_DOMAIN, "DNS domain of the cluster.", DOMAIN)
    yield Setting("logLevel", "info", "Minimum severity of log lines.", choice(*LEVELS))
    yield Setting("logFormat", "text", "Format of log lines.", choice(*FORMATS))


def _components(deployments: dict[str, Object]) -> Iterator[Setting]:
    replicas = {"controller": " One is active, the others are standbys.", "webhook": ""}
    options = {"controller": "--sync-period=300", "webhook": "--shutdown-delay=5"}
    for section, deployment in deployments.items():
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        count, resources = deployment["spec"]["replicas"], container["resources"]
        yield Setting(f"{section}.replicas", count, f"Number of pods.{replicas[section]}", REPLICAS)
        yield Setting(
            f"{section}.resources", resources, "Requests and limits of the container.", kubernetes(ResourceRequirements)
        )
        yield Setting(
            f"{section}.extraArgs", [], f"Additional options of the process, such as `{options[section]}`.", STRINGS
        )
        yield Setting(f"{section}.podLabels", {}, "Additional labels of the pods.", LABELS)
        yield Setting(f"{section}.podAnnotations", {}, "Additional annotations of the pods.", LABELS)
        yield Setting(f"{section}.priorityClassName", "", "PriorityClass of the pods.", STRING)
        yield Setting(f"{section}.nodeSelector", {}, "Labels of the nodes for the pods.", LABELS)
        yield Setting(f"{section}.tolerations", [], "Taints that the pods tolerate.", many(kubernetes(Toleration)))
        yield Setting(f"{section}.affinity", {}, "Affinity of the pods.", kubernetes(Affinity))


def _add_ons(sources: Sources) -> Iterator[Setting]:
    (clients,) = [rule["from"] for each in sources["network"] for rule in each["spec"]["ingress"] if "from" in rule]
    yield Setting(
        "certificates.source",
        "operator",
        "`operator`: the controller issues and renews the certificate. `cert-manager`: cert-manager issues and renews "
        "it, and must already be installed. The controller then has no permission on Secrets and webhook "
        "configurations.",
        choice("operator", "cert-manager"),
    )
    yield Setting(
        "crds.enabled",
        True,
        "Install and upgrade the CustomResourceDefinitions. Helm never deletes them, because all caches would be "
        "deleted with them.",
        BOOLEAN,
    )
    yield Setting(
        "admissionPolicies.enabled",
        True,
        "Create policies that limit what the controller's account may write.",
        BOOLEAN,
    )
    yield Setting(
        "podDisruptionBudgets.enabled",
        True,
        "Create PodDisruptionBudgets, so that a node drain evicts one controller pod and one webhook pod at a time.",
        BOOLEAN,
    )
    yield Setting(
        "networkPolicy.enabled",
        False,
        "Create NetworkPolicies, so that the operator's pods accept only admission requests and metrics scrapes.",
        BOOLEAN,
    )
    yield Setting(
        "networkPolicy.admissionFrom",
        [],
        "The clients that may connect to the webhook's port. If empty, all clients. If you leave an API server out "
        "of the list, it rejects requests to create or change Memcacheds and AppServices.",
        many(kubernetes(NetworkPolicyPeer)),
    )
    yield Setting(
        "networkPolicy.metricsFrom",
        clients,
        "The clients that may connect to the metrics port.",
        many(kubernetes(NetworkPolicyPeer)) | {"minItems": 1},
    )
    yield Setting(
        "monitoring.enabled",
        False,
        "Create a ServiceMonitor for the metrics of the controller and the webhook, and a PrometheusRule with alerts "
        "about them. Both require the Prometheus operator.",
        BOOLEAN,
    )
    yield Setting("monitoring.interval", "", "Time between scrapes, such as `30s`. If empty, Prometheus' own.", STRING)
    yield Setting(
        "monitoring.labels", {}, "Additional labels of both objects, for the selectors of a Prometheus.", LABELS
    )
    yield Setting(
        "monitoring.dashboards",
        False,
        'Create ConfigMaps that contain the dashboards and have the label `grafana_dashboard: "1"`, for the sidecar of '
        "Grafana's chart.",
        BOOLEAN,
    )


def _common() -> Iterator[Setting]:
    yield Setting("commonLabels", {}, "Additional labels of all objects of the chart, except pods and caches.", LABELS)
    yield Setting("commonAnnotations", {}, "Additional annotations of the same objects.", LABELS)


def nested(found: Sequence[Setting]) -> dict[str, Any]:
    """The settings as a tree: name → Setting, or a mapping of the settings of a section."""
    tree: dict[str, Any] = {}
    for each in found:
        section, _, name = each.path.rpartition(".")
        (tree.setdefault(section, {}) if section else tree)[name] = each
    return tree
