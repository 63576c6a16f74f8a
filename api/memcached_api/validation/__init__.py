"""Rules in Python and CEL, field errors, and decoding of objects: what all kinds share."""
