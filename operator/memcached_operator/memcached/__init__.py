"""The kind Memcached: what its children should be, and what its status should say."""
