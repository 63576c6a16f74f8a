"""Statuses: conditions, when they are written, and the Events that report them."""
