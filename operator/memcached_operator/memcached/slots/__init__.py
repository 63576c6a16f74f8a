"""The pods of a Memcached with `identity: Stable`: their rollout, its pause, and what can change while they run."""
