"""The way from an event to the writes it needs: manager, reconciler, and decisions about each child."""
