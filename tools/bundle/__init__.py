"""Generates an OLM bundle and a catalogue from config/: `python -m bundle --help`."""
