"""The steps with the Operator Lifecycle Manager: installation, upgrade, removal."""
