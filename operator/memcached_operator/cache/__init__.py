"""The cache of watched objects, updated by watch events and by responses to writes."""
