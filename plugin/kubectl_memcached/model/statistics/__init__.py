"""What memcached and its agent report in numbers, and what follows from it."""
