"""Container images built locally, without a registry, from a Debian root file system."""

from cluster.images.recipes import BASE, BUILD, PAUSE

__all__ = ["BASE", "BUILD", "PAUSE"]
