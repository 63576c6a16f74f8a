"""The newcomer's story through OLM, narrated and checked: `make olm-demo`. On the screen and the waiting of `demo`."""
