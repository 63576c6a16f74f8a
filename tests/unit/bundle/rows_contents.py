"""Wrong files, labels, versions and kinds: one thing in each bundle."""

from bundle.release import ANNOTATIONS, DOCKERFILE, MANIFESTS
from unit.bundle import broken
from unit.bundle.broken import CRD, GOOD, NAME, SERVICE, Broken

ACCOUNT = {"kind": "ServiceAccount", "metadata": {"name": "memcached-operator-webhook"}}
THEIRS = {"kind": "Service", "metadata": {"name": "memcached-operator-webhook-service"}}
POLICY = {"kind": "NetworkPolicy", "apiVersion": "networking.k8s.io/v1"}
HOOK = {"kind": "ValidatingWebhookConfiguration", "apiVersion": "admissionregistration.k8s.io/v1"}
ADMIN = {
    "kind": "ClusterRoleBinding",
    "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
    "subjects": [{"kind": "ServiceAccount", "name": "memcached-operator-controller-manager"}],
}

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
    Broken(
        "objects",
        ("bundle/metadata/dependencies.yaml", "refused by OLM v1"),
        GOOD | {"bundle/metadata/dependencies.yaml": "dependencies: []\n"},
    ),
    Broken("objects", ("bundle/notes.txt", "must go"), GOOD | {"bundle/notes.txt": "x"}),
    Broken(
        "objects",
        ("CustomResourceDefinition", "memcacheds.cache.example.com", "once"),
        GOOD | {f"{MANIFESTS}/again.yaml": GOOD[CRD]},
    ),
    Broken("objects", ("kind", '"Secret"', "must be one of"), broken.file("p.yaml", kind="Secret")),
    Broken("objects", ("kind", '"ClusterRoleBinding"'), broken.file("p.yaml", **ADMIN)),
    Broken("objects", ("kind", '"RoleBinding"'), broken.file("p.yaml", **ADMIN | {"kind": "RoleBinding"})),
    Broken("objects", ("kind", '"ValidatingWebhookConfiguration"'), broken.file("p.yaml", **HOOK)),
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
    Broken("versions", ("metadata.name", NAME, "v999.0.0"), broken.spec(version="999.0.0")),
    Broken("versions", ("metadata.name", "63"), broken.csv(lambda c: c["metadata"].update(name=f"{'x' * 64}.v0.1.0"))),
    Broken("versions", ("minKubeVersion", '"1.30"', "three numbers"), broken.spec(minKubeVersion="1.30")),
    Broken("versions", ("olm.skipRange", '"< 0.2"', ">=0.1.0 <0.2.0"), broken.annotation("olm.skipRange", "< 0.2")),
    Broken("versions", ("spec.replaces", NAME, "another release"), broken.spec(replaces=NAME)),
    Broken("versions", ("spec.skips", '"other.v1.0.0"'), broken.spec(skips=["other.v1.0.0"])),
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
        ("memcached-sample].spec.size: 0: is refused at admission", "at least 1"),
        broken.example(lambda e: e[0]["spec"].update(size=0)),
    ),
    Broken(
        "examples",
        ("spec.image: null: is refused at admission",),
        broken.example(lambda e: e[4]["spec"].pop("image")),
    ),
    Broken("examples", ("].sped: 1", "no field"), broken.example(lambda e: e[0].update(sped=1))),
    Broken(
        "examples",
        ("spec.image", "refused at admission"),
        broken.containers_env([{"name": "RELATED_IMAGE_MEMCACHED", "value": "not an image"}]),
    ),
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
ROWS = (*LABELS, *OBJECTS, *VERSIONS, *OWNED, *EXAMPLES, *DESCRIPTORS)
