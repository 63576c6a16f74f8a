"""The commit of a release: its checks, its changes, and the repository."""
