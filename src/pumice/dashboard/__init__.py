"""The dashboard: pages about a cluster or a simulation, for a browser.

Nothing here decides.  A feed copies what a session saw; documents are made of such copies; answers
that cost time are worked out in a process of their own.
"""
