"""Shared by the controller and the webhook process: options, logging, HTTP connections, probe and metrics servers."""
