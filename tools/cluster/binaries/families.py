"""Program families, each built from a Go module under tools/go: programs, build flags and cache key."""

import hashlib
import platform
from dataclasses import dataclass, field
from pathlib import Path

from cluster.paths import GO_MODULES
from cluster.plan import Mode
from cluster.versions import KUBERNETES, KUSTOMIZE, OLDEST_KUBERNETES, SUPPORTED, minor


@dataclass(frozen=True)
class Family:
    """One Go module and the programs built from it (program's name → Go package)."""

    name: str
    title: str
    programs: dict[str, str]
    variables: dict[str, str] = field(default_factory=dict[str, str])
    tags: tuple[str, ...] = ()
    folder: str = ""
    """Directory of the Go module, by default the family's name. Families may share one, and so its versions."""

    @property
    def module(self) -> Path:
        """The directory with go.mod and go.sum."""
        return GO_MODULES / (self.folder or self.name)

    @property
    def flags(self) -> list[str]:
        """Flags of `go build` for every program of the family."""
        stamps = [f"-X {name}={value}" for name, value in self.variables.items()]
        tags = [f"-tags={','.join(self.tags)}"] if self.tags else []
        # The linker leaves debugging information out; without writing it, a build needs 5 % less processor time.
        lean = ["-gcflags=all=-dwarf=false", "-ldflags", " ".join(["-s", "-w", *stamps])]
        return ["-mod=readonly", "-trimpath", "-buildvcs=false", *tags, *lean]

    def key(self) -> str:
        """A hash of everything that the programs are built from."""
        digest = hashlib.sha256()
        for part in (*sorted(self.programs.items()), self.flags, platform.system(), platform.machine()):
            digest.update(repr(part).encode())
        for file in sorted(self.module.rglob("*")):
            if file.suffix in {".mod", ".sum", ".go"}:
                digest.update(str(file.relative_to(self.module)).encode() + file.read_bytes())
        return digest.hexdigest()[:16]


def kubernetes_stamps(version: str) -> dict[str, str]:
    """The linker's variables that make the programs report their true version."""
    major, minor, _ = version.removeprefix("v").split(".")
    package = "k8s.io/component-base/version"
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return {f"{package}.{name}": value for name, value in values.items()}


def helm_stamps(version: str) -> dict[str, str]:
    """The linker's variables with which releases of Helm 3 state the Kubernetes that `helm template` renders for."""
    major, minor, _ = version.removeprefix("v").split(".")
    packages = ("chartutil", "lint/rules")
    return {
        f"helm.sh/helm/v3/pkg/{package}.k8sVersion{name}": value
        for package in packages
        for name, value in (("Major", major), ("Minor", minor))
    }


KUBERNETES_FAMILY = Family(
    "kubernetes",
    f"kubernetes {KUBERNETES}",
    {
        name: f"k8s.io/kubernetes/cmd/{name}"
        for name in (
            "kubectl",
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kubelet",
            "kube-proxy",
        )
    },
    kubernetes_stamps(KUBERNETES),
)
CONTROL_PLANE = ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
KUBECTL = "kubectl"


def control_plane_family(version: str) -> Family:
    """The control plane of a version, and its kubectl; `cluster.binaries.modules` writes their module."""
    programs = {name: f"k8s.io/kubernetes/cmd/{name}" for name in (*CONTROL_PLANE, KUBECTL)}
    if version == OLDEST_KUBERNETES:
        programs["crd-costs"] = "./crd-costs"  # ours: the API server's cost estimates for the rules of a CRD
    return Family(f"kubernetes-{minor(version)}", f"kubernetes {version}", programs, kubernetes_stamps(version))


CONTROL_PLANE_FAMILIES = {version: control_plane_family(version) for version in SUPPORTED if version != KUBERNETES}
OLDEST_FAMILY = CONTROL_PLANE_FAMILIES[OLDEST_KUBERNETES]
KUSTOMIZE_FAMILY = Family(
    "kustomize",
    f"kustomize {KUSTOMIZE}",
    {"kustomize": "sigs.k8s.io/kustomize/kustomize/v5"},
    {"sigs.k8s.io/kustomize/api/provenance.version": KUSTOMIZE},
)
ETCD_FAMILY = Family("etcd", "etcd", {"etcd": "go.etcd.io/etcd/server/v3"})
COREDNS_FAMILY = Family("coredns", "coredns", {"coredns": "."})
PAUSE_FAMILY = Family("pause", "pause", {"pause": "."})
KWOK_FAMILY = Family("kwok", "kwok", {"kwok": "sigs.k8s.io/kwok/cmd/kwok"})
ACTIONLINT_FAMILY = Family("actionlint", "actionlint", {"actionlint": "github.com/rhysd/actionlint/cmd/actionlint"})

CERT_MANAGER_FAMILY = Family("cert-manager", "cert-manager", {"cert-manager": "."})
"""Our program that runs cert-manager's controller, webhook or cainjector."""
GITOPS_FAMILY = Family(
    "gitops", "gitops-health and gitops-diff", {"gitops-health": "./health", "gitops-diff": "./diff"}
)
"""Our programs that print the health of objects, and their differences to manifests, as GitOps tools see them."""

RELEASE_FAMILY = Family(
    "release",
    "crane and cosign",
    {
        "crane": "github.com/google/go-containerregistry/cmd/crane",
        "cosign": "github.com/sigstore/cosign/v3/cmd/cosign",
    },
)
"""What pushes the images of a release, signs them and verifies the signatures."""
HELM_FAMILIES = {
    "helm-3": Family(
        "helm-3", "Helm 3", {"helm-3": "helm.sh/helm/v3/cmd/helm"}, helm_stamps(KUBERNETES), folder="helm"
    ),
    "helm-4": Family("helm-4", "Helm 4", {"helm-4": "helm.sh/helm/v4/cmd/helm"}, folder="helm"),
}
"""Both are named helm by Go, so each is a family of its own. They share the packages of one module."""
KUBECONFORM_FAMILY = Family(
    "kubeconform", "kubeconform", {"kubeconform": "github.com/yannh/kubeconform/cmd/kubeconform"}
)

VALE_FAMILY = Family("vale", "vale", {"vale": "github.com/vale-cli/vale/v3/cmd/vale"})

KREW_FAMILY = Family(
    "krew",
    "krew",
    {
        "krew": "sigs.k8s.io/krew/cmd/krew",
        "validate-krew-manifest": "sigs.k8s.io/krew/cmd/validate-krew-manifest",
    },
)
"""kubectl's plug-in manager, which installs the plugin in its test, and the check of its index."""
PROMETHEUS_OPERATOR_FAMILY = Family(
    "prometheus-operator",
    "prometheus-operator",
    {"operator": "github.com/prometheus-operator/prometheus-operator/cmd/operator"},
)

LINTERS = {"actionlint": ACTIONLINT_FAMILY, "vale": VALE_FAMILY}
"""Development tools that are not part of a cluster, by name."""

Wanted = list[tuple[Family, tuple[str, ...]]]


def wanted(mode: Mode | None, version: str = KUBERNETES) -> Wanted:
    """The programs of a mode, by family, quick builds first; None: only the clients.

    `version` is that of the control plane; node mode supports only the default.
    """
    if mode is None:
        return [(KUSTOMIZE_FAMILY, ("kustomize",)), (KUBERNETES_FAMILY, ("kubectl",))]
    base = [(KUSTOMIZE_FAMILY, ("kustomize",)), (ETCD_FAMILY, ("etcd",))]
    if mode == "control-plane":
        return [*base, *control_plane(version), (KWOK_FAMILY, ("kwok",))]
    kubernetes = (KUBERNETES_FAMILY, tuple(KUBERNETES_FAMILY.programs))
    return [*base, kubernetes, (COREDNS_FAMILY, ("coredns",)), (PAUSE_FAMILY, ("pause",))]


def kubectl_of(version: str) -> Wanted:
    """kubectl of this version, one of SUPPORTED."""
    return [({KUBERNETES: KUBERNETES_FAMILY, **CONTROL_PLANE_FAMILIES}[version], (KUBECTL,))]


def control_plane(version: str) -> Wanted:
    """The programs of a control plane of this version; its tools use the kubectl of clusters with nodes."""
    if family := CONTROL_PLANE_FAMILIES.get(version):
        return [(KUBERNETES_FAMILY, ("kubectl",)), (family, CONTROL_PLANE)]
    return [(KUBERNETES_FAMILY, ("kubectl", *CONTROL_PLANE))]
