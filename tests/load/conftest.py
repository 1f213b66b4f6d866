import asyncio

# In a test that is not async, looptime's plugin asks for the event loop. Python makes one then, unless it was
# said that there is none; nobody would close it.
asyncio.set_event_loop(None)
