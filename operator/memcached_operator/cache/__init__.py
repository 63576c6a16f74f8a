"""What was last seen of the cluster: a cache that watches and replies to writes keep current."""
