"""Access to the API server: connection, client, reflector, resources and labels."""
