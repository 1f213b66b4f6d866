"""A restaurant whose telephone is answered by an agent, in English and in Chinese.

agents/         who answers the telephone: the host, and the manager the host hands over to
book.py         the reservations (SQLAlchemy, SQLite)
menu.py         the dishes that callers ask about
restaurant.py   what the agents share: the book, and how long each tool takes
model/          the model that needs no key and no network
chat.py         talk to the host yourself
calls/          calls written down in files
replay/         plays such a file on a session class, and draws what happened
"""
