"""The fault campaigns: the operator as a process, a proxy in front of the API server, and what must hold afterwards.

`python -m faults --help` runs them (`make test-faults`); docs/reliability.md tells the method and the figures.
"""
