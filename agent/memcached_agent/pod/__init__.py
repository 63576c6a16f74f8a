"""What the agent knows of its pod: the annotations, and a record that survives restarts of the agent."""
