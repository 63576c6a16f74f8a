"""Each check finds what it is for, says so, and finds nothing in the bundle of this tree."""

import re
from collections.abc import Callable, Iterator

import pytest
import yaml

from bundle.catalog import CATALOG
from bundle.checks import CHECKS, faults
from bundle.checks.subject import Fault, Subject
from bundle.errors import BundleError
from bundle.objects import yaml_of
from bundle.release import ANNOTATIONS, CSV_FILE, DOCKERFILE, MANIFESTS, SCORECARD
from unit.bundle import broken
from unit.bundle.broken import CONFIG, CRD, GOOD, SERVICE, Broken

NAME = "memcached-operator.v0.1.0"
LONG = f"{'a' * 60}.cache.example.com"
SECRET = {"name": "webhook-cert", "secret": {"secretName": "memcached-operator-webhook-cert"}}
GRANT = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}
ACCOUNT = {"kind": "ServiceAccount", "metadata": {"name": "memcached-operator-webhook"}}
THEIRS = {"kind": "Service", "metadata": {"name": "memcached-operator-webhook-service"}}
POLICY = {"kind": "NetworkPolicy", "apiVersion": "networking.k8s.io/v1"}
ENTRY = {"name": "memcached-operator.v0.2.0"}
CONVERSION = {"type": "ConversionWebhook", "generateName": "cmemcacheds.kb.io"}

LABELS = [
    Broken("labels", (ANNOTATIONS, "mediatype.v1", '"helm"', "registry+v1"), broken.labels(mediatype="helm")),
    Broken("labels", (ANNOTATIONS, "package.v1", "memcached-operator"), broken.labels(package="memcached")),
    Broken("labels", (ANNOTATIONS, "channels.v1", "must name a channel"), broken.labels(channels="")),
    Broken("labels", (ANNOTATIONS, '"alpha"', "candidate, fast or stable"), broken.labels(channels="stable,alpha")),
    Broken("labels", (ANNOTATIONS, "default.v1", "one of the channels"), broken.labels(channel_default="fast")),
    Broken("labels", (DOCKERFILE, "package.v1", "the same"), GOOD | {DOCKERFILE: "LABEL a.package.v1=other\n"}),
    Broken("labels", (ANNOTATIONS, "mediatype.v1", "null"), GOOD | {ANNOTATIONS: ""}),
]
OBJECTS = [
    Broken("objects", ("deep/more.yaml", "directories"), broken.file("deep/more.yaml", kind="ConfigMap")),
    Broken("objects", (SERVICE, "documents: 2"), GOOD | {SERVICE: GOOD[SERVICE] + f"---\n{GOOD[CRD]}"}),
    Broken("objects", (CRD, "first line", "above it"), GOOD | {CRD: f"# A comment.\n---\n{GOOD[CRD]}"}),
    Broken("objects", ("kind", '"NetworkPolicy"'), broken.file("p.yaml", **POLICY)),
    Broken("objects", ("kind", '"PodMonitor"'), broken.file("p.yaml", kind="PodMonitor")),
    Broken("objects", ("kind", '"Deployment"'), broken.file("p.yaml", kind="Deployment")),
    Broken(
        "objects",
        (SERVICE, "metadata.namespace"),
        broken.changed(SERVICE, lambda s: s["metadata"].update(namespace="n")),
    ),
    Broken("objects", ("sa.yaml", "OLM makes the accounts"), broken.file("sa.yaml", **ACCOUNT)),
    Broken("objects", ("svc.yaml", "another name"), broken.file("svc.yaml", **THEIRS)),
    Broken(
        "objects", ("ClusterServiceVersions: 2", "must be one"), broken.file("csv.yaml", kind="ClusterServiceVersion")
    ),
]
VERSIONS = [
    Broken("versions", ("spec.version", '"1.0"', "semantic version"), broken.spec(version="1.0")),
    Broken("versions", ("metadata.name", NAME, "v0.2.0"), broken.spec(version="0.2.0")),
    Broken("versions", ("metadata.name", "63"), broken.csv(lambda c: c["metadata"].update(name=f"{'x' * 64}.v0.1.0"))),
    Broken("versions", ("minKubeVersion", '"1.30"', "three numbers"), broken.spec(minKubeVersion="1.30")),
    Broken("versions", ("olm.skipRange", '"< 0.2"', ">=0.1.0 <0.2.0"), broken.annotation("olm.skipRange", "< 0.2")),
    Broken("versions", ("spec.replaces", NAME, "another release"), broken.spec(replaces=NAME)),
    Broken(
        "versions",
        ("spec.replaces", "v0.0.9", "one of the releases"),
        broken.spec(replaces="memcached-operator.v0.0.9"),
    ),
    Broken("versions", ("spec.skips", '"other.v1.0.0"'), broken.spec(skips=["other.v1.0.0"])),
    Broken("versions", (CATALOG, "channel stable", "make catalog"), broken.annotation("olm.skipRange", "<0.1.0")),
    Broken("versions", (CATALOG, "channel fast"), broken.labels(channels="stable,fast")),
]
OWNED = [
    Broken(
        "owned", ("memcacheds.cache.example.com v1", "CRD in the bundle"), {k: v for k, v in GOOD.items() if k != CRD}
    ),
    Broken("owned", ("v1alpha1", "add memcacheds.cache.example.com v1alpha1"), broken.owned(lambda o: o.pop(1))),
    Broken("owned", ("memcacheds.cache.example.com v1", "stand once"), broken.owned(lambda o: o.append(o[0]))),
    Broken("owned", ("owned[Memcached v1].description",), broken.owned(lambda o: o[0].pop("description"))),
    Broken("owned", ("owned[Memcached v1].resources",), broken.owned(lambda o: o[0].update(resources=[]))),
]
EXAMPLES = [
    Broken("examples", ("alm-examples", "JSON list"), broken.annotation("alm-examples", "[")),
    Broken("examples", ("alm-examples", "JSON list"), broken.annotation("alm-examples", '["x"]')),
    Broken(
        "examples",
        ("app.example.com v1 AppService", "config/samples"),
        broken.example(lambda e: e.__delitem__(slice(4, 6))),
    ),
    Broken(
        "examples", ("memcached-sample", '"v1"', "owned kind"), broken.example(lambda e: e[0].update(apiVersion="v1"))
    ),
    Broken("examples", ("memcached-sample].spec", "scorecard"), broken.example(lambda e: e[0].pop("spec"))),
    Broken("examples", ("spec.colour", "no field"), broken.example(lambda e: e[0]["spec"].update(colour="red"))),
    Broken(
        "examples",
        ("nginx-app].spec.ports[0].x", "no field"),
        broken.example(lambda e: e[4]["spec"]["ports"][0].update(x=1)),
    ),
    Broken(
        "examples",
        ("refused at admission", "spec.size", "at least 1"),
        broken.example(lambda e: e[0]["spec"].update(size=0)),
    ),
    Broken("examples", ("refused at admission", "spec.image"), broken.example(lambda e: e[4]["spec"].pop("image"))),
]
DESCRIPTORS = [
    Broken(
        "descriptors",
        ("Memcached v1].specDescriptors[size]", "make bundle"),
        broken.owned(lambda o: o[0]["specDescriptors"].pop(0)),
    ),
    Broken(
        "descriptors",
        ("AppService v1].statusDescriptors[nodes]",),
        broken.owned(
            lambda o: next(d for d in o[2]["statusDescriptors"] if d["path"] == "nodes").update(displayName="")
        ),
    ),
    Broken(
        "descriptors",
        ("specDescriptors[colour]", "no field"),
        broken.owned(lambda o: o[0]["specDescriptors"].append({"path": "colour"})),
    ),
    Broken(
        "descriptors",
        ("must be one of", "appservices.app.example.com"),
        broken.owned(lambda o: o[0].update(name="x.y")),
    ),
]
WEBHOOKS = [
    Broken(
        "webhooks",
        ("deploymentName", '"webhook"', "memcached-operator-webhook"),
        broken.webhook(deploymentName="webhook"),
    ),
    Broken("webhooks", ("containerPort", "null", "443"), broken.webhook(containerPort=None)),
    Broken("webhooks", ("targetPort", '"webhook"', "9443"), broken.webhook(targetPort="webhook")),
    Broken(
        "webhooks",
        ("targetPort", "port of the pod"),
        broken.container(ports=[{"name": "webhook", "containerPort": 8443}]),
    ),
    Broken("webhooks", ("generateName", "63"), broken.webhook(generateName=LONG)),
    Broken("webhooks", ("generateName", '"mapp.com"', "three parts"), broken.webhook(generateName="mapp.com")),
    Broken(
        "webhooks",
        ("vmemcached.cache.example.com", "unique"),
        broken.webhook(generateName="vmemcached.cache.example.com"),
    ),
    Broken("webhooks", ("type", '"Mutating"', "MutatingAdmissionWebhook"), broken.webhook(type="Mutating")),
    Broken("webhooks", ("webhookPath", '"/mutate"', "served"), broken.webhook(webhookPath="/mutate")),
    Broken("webhooks", ("sideEffects", '"Some"', "None"), broken.webhook(sideEffects="Some")),
    Broken(
        "webhooks", ("admissionReviewVersions", "v1beta1"), broken.webhook(admissionReviewVersions=["v1", "v1beta1"])
    ),
    Broken("webhooks", ("timeoutSeconds", "30", "1 to 10"), broken.webhook(timeoutSeconds=30)),
    Broken("webhooks", ("timeoutSeconds", "null"), broken.webhook(timeoutSeconds=None)),
    Broken("webhooks", (".rules", "name the kinds"), broken.webhook(rules=[])),
    Broken("webhooks", ("rules.apiGroups", '"*"', "OLM refuses"), broken.rule(apiGroups=["*"])),
    Broken("webhooks", ("rules.apiGroups", "operators.coreos.com"), broken.rule(apiGroups=["operators.coreos.com"])),
    Broken("webhooks", ("rules.resources", '"*/status"', "one by one"), broken.rule(resources=["*/status"])),
    Broken(
        "webhooks",
        (".failurePolicy", "Ignore", "config/webhook/manifests.yaml"),
        broken.webhook(failurePolicy="Ignore"),
    ),
    Broken("webhooks", (".rules", "config/webhook/manifests.yaml"), broken.rule(operations=["CREATE"])),
    Broken("webhooks", ("vmemcached", "config/webhook"), broken.csv(lambda c: c["spec"]["webhookdefinitions"].pop())),
]
PODS = [
    Broken(
        "pods",
        ("deployments", "memcached-operator-webhook"),
        broken.csv(lambda c: c["spec"]["install"]["spec"]["deployments"].pop()),
    ),
    Broken("pods", ("name", "without dots"), broken.deployment(lambda d: d.update(name="memcached.webhook"))),
    Broken("pods", ("volumes", "webhook-cert", "OLM mounts"), broken.pod(volumes=[SECRET])),
    Broken("pods", ("runAsNonRoot",), broken.pod(securityContext={"seccompProfile": {"type": "RuntimeDefault"}})),
    Broken("pods", ("seccompProfile",), broken.pod(securityContext={"runAsNonRoot": True})),
    Broken(
        "pods", ("args", "--manage-certificates", "OLM issues"), broken.container(0, args=["--manage-certificates"])
    ),
    Broken("pods", ("env[WATCH_NAMESPACE]", "olm.targetNamespaces"), broken.container(0, env=[])),
    Broken("pods", ("resources.requests.cpu",), broken.container(resources={"requests": {"memory": "64Mi"}})),
    Broken(
        "pods", ("allowPrivilegeEscalation",), broken.container(securityContext={"capabilities": {"drop": ["ALL"]}})
    ),
    Broken("pods", ("capabilities",), broken.container(0, securityContext={"allowPrivilegeEscalation": False})),
]
PERMISSIONS = [
    Broken(
        "permissions",
        ("clusterPermissions", "under permissions"),
        broken.permission(lambda s: s.update(clusterPermissions=[{"serviceAccountName": "x", "rules": []}])),
    ),
    Broken(
        "permissions",
        ("memcached-operator-webhook", "makes no account"),
        broken.permission(lambda s: s["permissions"].pop()),
    ),
    Broken(
        "permissions",
        ("controller-manager]", "get secrets", "must go"),
        broken.permission(lambda s: s["permissions"][0]["rules"].append(GRANT)),
    ),
    Broken(
        "permissions",
        ("webhook]", "get secrets", "must go"),
        broken.permission(lambda s: s["permissions"][1]["rules"].append(GRANT)),
    ),
    Broken(
        "permissions",
        ("controller-manager]", "memcacheds", "is missing"),
        broken.permission(lambda s: s["permissions"][0]["rules"].pop(0)),
    ),
]
IMAGES = [
    Broken(
        "images",
        ("relatedImages", "memcached:1.6.38", "missing"),
        broken.csv(lambda c: c["spec"]["relatedImages"].pop(0)),
    ),
    Broken(
        "images",
        ("relatedImages", "nginx:1", "stand once"),
        broken.csv(lambda c: c["spec"]["relatedImages"].append({"name": "n", "image": "docker.io/library/nginx:1"})),
    ),
    Broken(
        "images",
        ("relatedImages", '""', "full reference"),
        broken.csv(lambda c: c["spec"]["relatedImages"].append({"name": "n", "image": ""})),
    ),
    Broken(
        "images",
        ("RELATED_IMAGE_", "the same"),
        broken.container(0, env=[{"name": "RELATED_IMAGE_MEMCACHED", "value": "docker.io/library/memcached:1"}]),
    ),
    Broken("images", ("containerImage", '"x:1"', "of the Deployments"), broken.annotation("containerImage", "x:1")),
]
PRESENTATION = [
    Broken("presentation", ("spec.icon", "0"), broken.spec(icon=[])),
    Broken("presentation", ("icon.mediatype", "image/png"), broken.icon(b"<svg/>", "image/png")),
    Broken("presentation", ("icon.base64data", "must be an SVG"), broken.icon(b"\x89PNG")),
    Broken(
        "presentation",
        ("icon.base64data", "must be an SVG"),
        broken.spec(icon=[{"base64data": "%", "mediatype": "image/svg+xml"}]),
    ),
    Broken("presentation", ("icon.base64data", "32768"), broken.icon(b"<svg>" + b" " * 40_000 + b"</svg>")),
    Broken("presentation", ("capabilities", '"Full"', "Seamless Upgrades"), broken.annotation("capabilities", "Full")),
    Broken("presentation", ("categories", '"Cache"', "Database"), broken.annotation("categories", "Database, Cache")),
    Broken("presentation", ("createdAt", '"today"'), broken.annotation("createdAt", "today")),
    Broken("presentation", ("[description]", "135"), broken.annotation("description", "x" * 136)),
    Broken("presentation", ("repository", "must be there"), broken.annotation("repository", "")),
    Broken("presentation", ("olm.skiprange", "mind the case"), broken.annotation("olm.skiprange", "<1.0.0")),
    Broken("presentation", ("spec.displayName",), broken.spec(displayName="x")),
    Broken("presentation", ("spec.description", "decide"), broken.spec(description="Runs memcached.")),
    Broken("presentation", ("spec.provider.name",), broken.spec(provider={})),
    Broken("presentation", ("spec.keywords",), broken.spec(keywords=[])),
    Broken("presentation", ("spec.maintainers",), broken.spec(maintainers=[{"name": "x", "email": "nobody"}])),
    Broken("presentation", ("spec.links",), broken.spec(links=[{"name": "x", "url": "example.com"}])),
]
SIZE = [
    Broken(
        "size",
        ("compressed bytes", "less than"),
        GOOD | {f"{MANIFESTS}/x": "".join(f"{i * i:x}" for i in range(260_000))},
    )
]
GRAPH = [
    Broken("graph", ("olm.package", "one"), broken.catalog(lambda d: d.pop(0))),
    Broken("graph", ("defaultChannel", '"fast"'), broken.catalog(lambda d: d[0].update(defaultChannel="fast"))),
    Broken("graph", ("olm.bundle.name", NAME, "once"), broken.catalog(lambda d: d.append(d[2]))),
    Broken(
        "graph",
        ("olm.channel.entries", "v0.2.0", "olm.bundle"),
        broken.catalog(lambda d: d[1]["entries"].append(ENTRY)),
    ),
    Broken("graph", ("properties", "one olm.package"), broken.catalog(lambda d: d[2]["properties"].pop(0))),
    Broken("graph", ("image", "null", "BUNDLE_IMG"), broken.catalog(lambda d: d[2].pop("image"))),
    Broken(
        "graph",
        ("one head", "v0.1.0, memcached-operator.v0.2.0"),
        broken.catalog(lambda d: d[1]["entries"].append(ENTRY)),
    ),
    Broken(
        "graph",
        ("circle",),
        broken.catalog(
            lambda d: d[1].update(
                entries=[{"name": "c", "replaces": "b"}, {"name": "b", "replaces": "a"}, {"name": "a", "replaces": "b"}]
            )
        ),
    ),
    Broken(
        "graph",
        ('"a"', "reached from c"),
        broken.catalog(
            lambda d: d[1].update(
                entries=[{"name": "c"}, {"name": "a", "replaces": "b"}, {"name": "b", "replaces": "a"}]
            )
        ),
    ),
]
CONVERSIONS = [
    Broken(
        "conversion",
        ("installModes", "MultiNamespace", "declared"),
        broken.csv(lambda c: c["spec"]["installModes"].pop(2)),
    ),
    Broken(
        "conversion",
        ("AllNamespaces", "false", "OLM v1"),
        broken.csv(lambda c: c["spec"]["installModes"][3].update(supported=False)),
    ),
    Broken(
        "conversion",
        ("cmemcacheds.kb.io", "AllNamespaces only"),
        broken.csv(lambda c: c["spec"]["webhookdefinitions"].append(CONVERSION)),
    ),
    Broken(
        "conversion",
        (CRD, "spec.conversion"),
        broken.changed(CRD, lambda d: d["spec"].update(conversion={"strategy": "Webhook"})),
    ),
]
SCORECARDS = [
    Broken(
        "scorecard", (SCORECARD, "olm-spec-descriptors", "must have the labels"), broken.scorecard(lambda t: t.pop(4))
    ),
    Broken(
        "scorecard", ("basic-check-spec", "other"), broken.scorecard(lambda t: t[0]["labels"].update(suite="other"))
    ),
    Broken(
        "scorecard",
        ("more", "is no test"),
        broken.scorecard(lambda t: t[5].update(entrypoint=["scorecard-test", "more"])),
    ),
]
ALL = (
    *LABELS, *OBJECTS, *VERSIONS, *OWNED, *EXAMPLES, *DESCRIPTORS, *WEBHOOKS, *PODS, *PERMISSIONS, *IMAGES,
    *PRESENTATION, *SIZE, *GRAPH, *CONVERSIONS, *SCORECARDS,
)  # fmt: skip
BY_NAME: dict[str, Callable[[Subject], Iterator[Fault]]] = {check.__name__: check for check in CHECKS}


def test_the_bundle_of_this_tree_has_no_faults() -> None:
    assert faults(GOOD, CONFIG) == []


@pytest.mark.parametrize("case", ALL, ids=lambda case: f"{case.check}: {case.told[0]}")
def test_what_is_broken_is_found_and_told(case: Broken) -> None:
    found = [str(fault) for fault in BY_NAME[case.check](Subject(case.files, CONFIG))]
    assert any(all(word in message for word in case.told) for message in found), found


def test_every_check_has_bundles_it_refuses() -> None:
    assert {case.check for case in ALL} == BY_NAME.keys()


def test_every_point_has_its_check() -> None:
    points = sorted(int(match.group(1)) for check in CHECKS if (match := re.match(r"(\d+): ", check.__doc__ or "")))
    # 5 has two; 13, that `make bundle` changes nothing, is `generate --check`.
    assert points == [1, 2, 3, 4, 5, 5, 6, 7, 8, 9, 10, 11, 12, 14, 15]


def test_a_circle_is_told_although_it_has_no_head() -> None:
    files = broken.catalog(
        lambda d: d[1].update(entries=[{"name": "a", "replaces": "b"}, {"name": "b", "replaces": "a"}])
    )
    assert any("one head" in str(fault) for fault in faults(files, CONFIG))


@pytest.mark.parametrize("path", [CSV_FILE, ANNOTATIONS, SCORECARD, CATALOG])
def test_what_is_no_yaml_is_one_sentence_with_the_file(path: str) -> None:
    with pytest.raises(BundleError, match=rf"{re.escape(path)} is not YAML"):
        faults(GOOD | {path: "a: [\n"}, CONFIG)


def test_a_bundle_without_its_heart_is_one_sentence() -> None:
    with pytest.raises(BundleError, match="make bundle"):
        faults({}, CONFIG)


def test_rules_of_another_configuration_are_a_fault() -> None:
    source = {path: text for path, text in CONFIG.items() if path != "config/webhook/manifests.yaml"}
    other = CONFIG["config/webhook/manifests.yaml"].replace("timeoutSeconds: 5", "timeoutSeconds: 3", 1)
    found = faults(GOOD, source | {"config/webhook/manifests.yaml": other})
    assert [fault.field for fault in found] == ["webhookdefinitions[mmemcached.cache.example.com].timeoutSeconds"]


def test_texts_of_several_lines_are_readable() -> None:
    text = yaml_of({"description": "one\ntwo\n"})
    assert text == "description: |\n  one\n  two\n"
    assert yaml.safe_load(text) == {"description": "one\ntwo\n"}
