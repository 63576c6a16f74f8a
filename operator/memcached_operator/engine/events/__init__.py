"""Reads Events where nothing else names the cause, of pods that are missing, not deleted, or wait for volumes.

Posts Events about pods that Kubernetes stops.
"""
