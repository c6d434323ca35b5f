"""Generated inputs: `make fuzz` makes them, tests replay those that once did harm."""
