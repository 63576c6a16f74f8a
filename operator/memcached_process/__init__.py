"""Shared by the controller and the webhook process: options, logging, HTTP connections, probes and metrics servers."""
