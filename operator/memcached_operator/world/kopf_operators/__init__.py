"""kopf operators, one per kind and watched namespace, that a reflector runs as its watch and starts again."""
