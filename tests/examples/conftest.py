"""For the tests of the restaurant."""

import asyncio

# In a test that is not async, looptime's plugin asks for the event loop. Python makes one then, unless it was
# told that there is none; nobody closes it, and that is an error in whatever test next collects the garbage.
asyncio.set_event_loop(None)
