"""A change of the number of servers behind memcached's proxy: its processes, its model, and what checks it."""
