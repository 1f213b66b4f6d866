"""A restaurant whose telephone is answered by an agent, in English and in Chinese.

agents/         who answers the telephone: the host, and those whom the host hands over to
texts.py        text messages to the caller: a toolset of the session, whoever has the floor
book.py         the reservations (SQLAlchemy, SQLite)
menu.py         the dishes that callers ask about and order
restaurant.py   what the agents share: the book, and how long each tool takes
model/          the model that needs no key and no network
chat.py         talk to the host yourself
calls/          calls written down in files
replay/         plays such a file on a session class, and draws what happened
"""
