"""The memory for items: the memcached of a running pod gets the memory of its pod, and keeps its items."""
