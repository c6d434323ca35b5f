"""The dashboard: pages about a cluster or a simulation, for a browser.

Nothing here decides.  A feed copies what a session saw; documents are made from copies; answers
that take time are computed in a separate process.
"""
