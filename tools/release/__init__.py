"""Making a release: the release commit, its images and files, their signatures. See docs/releasing.md."""
