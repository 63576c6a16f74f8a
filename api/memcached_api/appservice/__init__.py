"""The kind AppService: types and defaults, rules, ports."""
