"""The agent: a small process beside memcached, in the same pod. It serves memcached's metrics to Prometheus."""
