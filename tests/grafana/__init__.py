"""The dashboards of tools/dashboards with data: of real processes, which a real Prometheus scrapes."""
