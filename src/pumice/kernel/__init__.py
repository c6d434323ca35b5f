"""The compiled part of placing: C without dependencies, and what builds and loads it."""
