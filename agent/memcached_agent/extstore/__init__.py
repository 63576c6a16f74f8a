"""The disk of extstore: memcached must not go on when its disk refuses writes."""
