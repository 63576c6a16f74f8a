"""The programs that a cluster runs: which there are, the Go toolchain that builds them into the cache, and the
packages of the system.
"""
