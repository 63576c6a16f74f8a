"""Corner tests: real memcached processes of the oldest and the newest tested release, at the limits of `spec.cache`."""
