"""The Operator Lifecycle Manager on the local cluster, and its own tools: built from source, run as they are."""
