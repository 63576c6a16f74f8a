"""The runtime of the process: leader election, work queue, signals, background tasks and threads."""
