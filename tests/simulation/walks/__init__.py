"""Random walks: users, other clients, faults and processes do anything for a while; then the objects settle."""
