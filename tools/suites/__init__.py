"""The test suites behind the `make test` targets: what each contains, and one command that runs several of them."""
