"""The API server: connection, client, watches, and the names of resources and labels. Knows nothing above it."""
