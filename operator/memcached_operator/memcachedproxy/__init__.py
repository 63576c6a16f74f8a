"""The MemcachedProxy controller: runs memcached's proxy as a Deployment with one Service, in front of a Memcached."""
