"""Real memcached processes of all tested releases at the limits of `spec.cache`."""
