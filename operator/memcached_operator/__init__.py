"""The controller process: keeps what Memcached and AppService objects declare."""

__version__ = "0.1.0"
