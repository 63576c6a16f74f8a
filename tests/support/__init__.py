"""What tests on a real cluster share."""
