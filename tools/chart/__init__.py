"""Generates the Helm chart from the rendered objects of config/."""
