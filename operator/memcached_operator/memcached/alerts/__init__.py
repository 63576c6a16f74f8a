"""The alerts of caches: the one source of each PrometheusRule and of the plain rules file."""
