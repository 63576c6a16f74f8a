"""Pure functions: from JSON of the API server and replies of memcached to tables, advice and documents."""
