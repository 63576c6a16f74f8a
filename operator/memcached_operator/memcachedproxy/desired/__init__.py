"""Desired state: one pure builder per child."""
