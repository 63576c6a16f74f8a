"""The warm gate: the pod is not ready until its memcached serves most requests from its items.

The watcher polls memcached's `stats` and passes what it sees to pure functions: the gate of the pod, the window of
samples, the record of the process, and the decision.
"""
