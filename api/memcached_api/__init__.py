"""The API: types, defaults and rules of the kinds. One package per kind; what all kinds share is beside them."""
