"""Tests of a whole release, with real images, a registry and signatures. They take minutes and run nightly."""
