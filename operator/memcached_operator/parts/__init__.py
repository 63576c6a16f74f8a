"""The parts that several kinds have: one pure builder per part, which takes only the part of the spec that it reads."""
