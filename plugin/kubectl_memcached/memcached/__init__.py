"""Connections that speak memcached's text protocol."""
