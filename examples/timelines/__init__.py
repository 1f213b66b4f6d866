"""Calls of any agents, written down in files: who there is, what the models decide, and what happens when.

timeline.py      the format of such a file
cast.py          the agents, their tools, and the model: they do what the file says
player.py        plays a timeline on a session class
happened.py      what happened: what the bodies of the tools really did, and what the models were shown
story.py         the same, to read
properties.py    the guarantees G1 to G9: what is wrong with what happened
about_calls.py, about_replies.py, about_agents.py, judging.py    each of them
"""
