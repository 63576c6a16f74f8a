"""What was observed: the store of watched objects, updated by watch events and by responses to writes."""
