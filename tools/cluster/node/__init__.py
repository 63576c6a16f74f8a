"""The parts of a node: its namespaces, control groups and network on this machine."""
