"""A local Kubernetes cluster: built from source, run in its own Linux namespaces, removed completely.

Needs Python's standard library only, because it runs before anything else has been installed.
"""
