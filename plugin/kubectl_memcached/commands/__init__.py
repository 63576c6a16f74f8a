"""One module per command: options, what is read, what is printed."""
