"""A change of size in phases, for a Memcached whose clients use proxies (`spec.scaling.warm`).

The order of reading: `latch` is the recorded state, `decision` the table of states and events, `facts` what it needs
of a snapshot, `change` puts them together for the plan, and `report` says what happens.
"""
