"""A small reconciling engine: events in, the least possible writes out. It knows no kind by name."""
