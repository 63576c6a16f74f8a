"""The results of the suites, and the branches that they execute."""
