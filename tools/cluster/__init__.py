"""A Kubernetes cluster of one's own: built from source, run in namespaces of its own, gone without a trace.

Needs Python's standard library only, because it runs before anything else has been installed.
"""
