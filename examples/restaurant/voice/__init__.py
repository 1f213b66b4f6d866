"""A spoken call to the host, with no key and no network: the caller cuts in by speaking.

voices.py      what the host and the caller sound like (Piper)
ears.py        hears what the caller says (PocketSphinx); grammar.jsgf says what that can be
speaker.py     plays what the host says, and knows which words were heard
line.py        the telephone line: plays by the clock, both ways
recording.py   all that went over it, in stereo
call.py        the caller, who speaks while the table is being booked
report.py      who said what when

What it needs beside the other modes is the extra `voice`: `pip install '.[voice]'`.
"""

from .call import have_call
from .report import drawing, save

__all__ = ["drawing", "have_call", "save"]
