"""Plays a call that is written down in a file, and draws what happened.

callfile.py   reads the file; the format is described in calls/README.md
nodes.py      reads YAML so that each mistake is one error, with its line
play.py       does what the caller does, when it is time
moments.py    waits for something to happen in the call
record.py     takes down what happens
happened.py   what happened, as plain data, and what of it should not be
draw.py       draws it on the terminal
lanes.py      the picture: time runs to the right, and everyone has a lane
summary.py    all calls in one table
"""
