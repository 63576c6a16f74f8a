"""Access to the API server: configuration, client, reflector, resources and labels."""
