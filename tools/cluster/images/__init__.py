"""Images without a registry: a Debian root file system, packed by ourselves, under names that say what they are."""

from cluster.images.recipes import BASE, BUILD, PAUSE

__all__ = ["BASE", "BUILD", "PAUSE"]
