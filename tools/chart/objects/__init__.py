"""The operator's objects as templates: variants become conditions, and values fill places."""
