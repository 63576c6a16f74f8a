"""The rules of Memcached, each in Python and in CEL."""
