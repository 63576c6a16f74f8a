"""Reload certificates and users: memcached reads the files again when they change, and proves that it uses them.

The kubelet replaces the files when a Secret changes. Each source of files has a watcher, which polls them.
"""
