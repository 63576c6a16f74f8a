"""The alerts of the operator, and the files in config/prometheus with rules, which `make manifests` writes."""
