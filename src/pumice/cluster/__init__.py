"""The edge to the world: the only code that talks to other programs."""
