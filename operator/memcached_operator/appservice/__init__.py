"""The kind AppService: an image becomes a running, reachable service."""
