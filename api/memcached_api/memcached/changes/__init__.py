"""What a change of a Memcached does to its pods."""
