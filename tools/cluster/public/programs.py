"""For other tools: build programs from Go modules into the cache, and find or install programs of the system."""

from cluster.binaries.builds import build_programs, directory, ensure_built, missing
from cluster.binaries.families import (
    CERT_MANAGER_FAMILY,
    GITOPS_FAMILY,
    HELM_FAMILIES,
    KREW_FAMILY,
    KUBECONFORM_FAMILY,
    KUBERNETES_FAMILY,
    OLDEST_FAMILY,
    PROMETHEUS_OPERATOR_FAMILY,
    RELEASE_FAMILY,
    Family,
    kubectl_of,
    wanted,
)
from cluster.binaries.packages import SYSTEM_PATH, find, install
from cluster.binaries.toolchain import GO_ENV, ensure_go

__all__ = [
    "CERT_MANAGER_FAMILY",
    "GITOPS_FAMILY",
    "GO_ENV",
    "HELM_FAMILIES",
    "KREW_FAMILY",
    "KUBECONFORM_FAMILY",
    "KUBERNETES_FAMILY",
    "OLDEST_FAMILY",
    "PROMETHEUS_OPERATOR_FAMILY",
    "RELEASE_FAMILY",
    "SYSTEM_PATH",
    "Family",
    "build_programs",
    "directory",
    "ensure_built",
    "ensure_go",
    "find",
    "install",
    "kubectl_of",
    "missing",
    "wanted",
]
