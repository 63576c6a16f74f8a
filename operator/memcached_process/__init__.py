"""What the two processes have in common as programs: their options, their log, and the small servers beside it."""
