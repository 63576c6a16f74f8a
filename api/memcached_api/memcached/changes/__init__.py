"""The effect of a change of a Memcached on its pods."""
