"""The documentation site: its pages and their links, checks of its navigation, and the build by Zensical."""
