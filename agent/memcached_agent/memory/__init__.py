"""Growth of memory: the memcached of a running pod gets more of it, and keeps its items."""
