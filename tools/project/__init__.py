"""The Makefile's longer recipes: `python -m project COMMAND`. Standard library only."""
