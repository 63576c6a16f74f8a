"""Packs config/ into an OLM bundle and a catalogue, and checks both: `python -m bundle --help`."""
