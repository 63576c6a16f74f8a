"""The controller process: keeps what Memcached objects declare."""

__version__ = "0.1.0"
