"""The Operator Lifecycle Manager (OLM) on the local cluster, and its tools, built from source."""
