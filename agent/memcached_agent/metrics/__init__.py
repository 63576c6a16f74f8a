"""The metrics, as values and as text."""
