"""Reads Events where nothing else names the cause: pods that cannot be created, and volumes that cannot be mounted."""
