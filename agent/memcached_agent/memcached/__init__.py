"""The connection to memcached, and what it reports."""
