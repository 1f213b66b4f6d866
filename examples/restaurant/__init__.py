"""A restaurant whose telephone is answered by an agent, in English and in Chinese.

agents/         who answers the telephone: the host, and those whom the host hands over to
texts.py        text messages to the caller: a toolset of the session, whoever has the floor
book.py         the reservations (SQLAlchemy, SQLite)
opening.py      when the restaurant seats guests, and which day a caller means
menu.py         the dishes that callers ask about and order
restaurant.py   what the agents share: the book, and how long each tool takes
model/          the model that needs no key and no network
chat.py         talk to the host yourself
worker.py       the LiveKit worker: the same agents, with OpenAI's models, in a room
calls/          calls written down in files
voice/          a spoken call, recorded, with no key and no network
replay/         plays such a file on a session class, and draws what happened
"""
