"""The rules about the parts of specs that kinds share, each in Python and in CEL."""
