"""Changes of the size of a Memcached with real pods."""
