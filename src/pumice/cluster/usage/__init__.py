"""Measured use of nodes, from the program that measures it; all sources behind one method."""
