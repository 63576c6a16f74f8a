"""Running the process: leader election, work queue, lifecycle and background tasks."""
