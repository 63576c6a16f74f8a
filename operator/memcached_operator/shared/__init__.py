"""The parts of children that several kinds have: one pure builder per part. Each takes only the part of the spec that
it reads, and imports no kind.
"""
