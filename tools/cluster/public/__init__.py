"""What other tools may import, besides the modules that tools/cluster/README.md lists."""
