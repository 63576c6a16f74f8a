"""The runtime of the process: leader election, work queue, signals and background tasks."""
