"""The Memcached controller: the desired state of its children, and its status."""
