"""Container images built locally, without a registry, from a Debian root file system."""
