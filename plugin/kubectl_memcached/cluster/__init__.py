"""Everything that reads or changes the cluster: kubectl is the only way to it."""
