"""The controller process: reconciles Memcached and AppService objects."""

__version__ = "0.1.0"
