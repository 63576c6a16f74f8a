"""The parts of a spec that several kinds have: types, defaults and rules. A kind adds its own fields to them."""
