"""For other tools: the memcached releases that the images and the tests use."""

from cluster.images.releases import GATE, PROGRAM, VERSIONS, ensure

__all__ = ["GATE", "PROGRAM", "VERSIONS", "ensure"]
