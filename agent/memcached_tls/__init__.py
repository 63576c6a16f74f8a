"""TLS for the ports of all programs. It needs only the standard library."""
