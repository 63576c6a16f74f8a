"""Updates the pods of a StatefulSet with the strategy OnDelete: with the least that each change needs, a limited
number at a time.

What is known about an update is in the pods alone, in their labels and annotations. So each decision is a pure function
of what exists, and any leader continues where another one has stopped.
"""
