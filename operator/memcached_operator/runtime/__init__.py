"""The runtime of the process: leader election, work queue, lifecycle and background tasks."""
