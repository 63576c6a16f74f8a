"""The warm gate: the pod is not ready until its memcached serves most requests from its items.

The watcher passes what it sees of memcached to pure functions: the gate of the pod, the window of samples, and the
decision.
"""
