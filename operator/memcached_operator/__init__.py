"""The controller process: reconciles Memcached, MemcachedProxy and AppService objects."""

__version__ = "0.1.0"
