"""The model that needs no key and no network.

It is a function from the context that it is shown to an answer, and keeps nothing between two inferences:
what it was not shown, it does not know. It serves every session class alike.

    context.py   reads the context: what was said, which calls were made, how each ended
    ears.py      what a caller means, in English and in Chinese
    when.py      the day and the time of which a caller speaks
    wishes.py    the calls that the caller's words ask for
    voice.py     how the answer is worded, in whichever language
    english.py   the sentences of one,
    chinese.py   and of the other
    words.py     numbers and months
    decide.py    puts them together
"""

from .decide import decide

__all__ = ["decide"]
