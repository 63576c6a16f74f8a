"""The steps with a Memcached: admission, pods, scaling, recovery, status."""
