"""The kind MemcachedProxy."""
