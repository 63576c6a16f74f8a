"""Updates in place: the pods of a StatefulSet keep their items, because their containers run in the simulation."""
