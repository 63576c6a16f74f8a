"""The pod of the agent: the annotations, and a record that survives restarts of the agent."""
