"""One module per campaign: a table of named cases."""
