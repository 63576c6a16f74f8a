"""The sweep before a change of the number of slots: remove the items that are not at their home in the old ring."""
