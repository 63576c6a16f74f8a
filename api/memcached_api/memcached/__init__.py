"""The kind Memcached: types and defaults, rules, memory."""
