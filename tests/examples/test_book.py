"""The restaurant's reservations."""

import sqlite3
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import datetime
from threading import Barrier

import pytest

from examples.restaurant.book import LARGEST_PARTY, TABLES, Book, BookError
from examples.restaurant.opening import OpeningError

NOW = datetime(2025, 12, 2, 12, 0)  # a Tuesday


def open_book(path=None):
    return Book(path, now=lambda: NOW)


@pytest.fixture
def book():
    with closing(open_book()) as book:
        yield book


def reserve(book, name="Miller", people=4, day="Friday", time="19:00"):
    return book.create(name=name, day=day, time=time, people=people)


def tables(book):
    """The tables that are taken, and by whom."""
    return {
        reservation.name: {place.table_number for place in reservation.places}
        for reservation in book.standing()
    }


def fill(book, people, **when):
    """Give away each table that is large enough."""
    for number in range(sum(seats >= people for seats in TABLES.values())):
        reserve(book, name=f"guest {number}", people=people, **when)


# -- orders


def test_order_numbers_begin_at_047_and_go_on(book):
    assert [reserve(book).order, reserve(book).order] == ["047", "048"]


def test_a_number_is_not_given_twice(book):
    book.cancel(reserve(book).order)
    assert reserve(book).order == "048"


def test_a_reservation_says_all_that_there_is_to_know(book):
    assert str(reserve(book)) == "order 047, Miller, Friday 2025-12-05 19:00, 4 people"


def test_find_by_name_in_any_case_or_by_number(book):
    made = reserve(book, name=" 王 ")
    assert {book.find(which).number for which in ("王", "047", "47")} == {made.number}
    reserve(book, name="Müller")
    assert book.find("MÜLLER").order == "048"


def test_what_is_over_is_not_found():
    now = [NOW]
    with closing(Book(now=lambda: now[0])) as book:
        reserve(book, day="today")
        now[0] = datetime(2025, 12, 3)
        with pytest.raises(BookError, match="no reservation 'Miller'"):
            book.find("Miller")


def test_change_keeps_the_rest(book):
    reserve(book)
    assert str(book.change("047", people=6)) == "order 047, Miller, Friday 2025-12-05 19:00, 6 people"
    changed = book.change("Miller", day="Sunday", time="20:30")
    assert str(changed) == "order 047, Miller, Sunday 2025-12-07 20:30, 6 people"
    assert book.find("047").people == 6


def test_a_change_of_the_time_keeps_the_day(book):
    reserve(book, day="2025-12-24")
    assert str(book.change("047", time="20:00")) == "order 047, Miller, Wednesday 2025-12-24 20:00, 4 people"


def test_a_cancelled_reservation_stands_no_more(book):
    reserve(book)
    book.cancel("Miller")
    assert book.standing() == []
    with pytest.raises(BookError, match="no reservation 'Miller'"):
        book.find("Miller")


def test_two_of_one_name_are_not_guessed_at(book):
    reserve(book)
    reserve(book)
    with pytest.raises(BookError, match="several reservations 'Miller': 047, 048"):
        book.cancel("Miller")


@pytest.mark.parametrize(
    ("wrong", "error", "message"),
    [
        ({"people": 0}, BookError, "parties of 1 to 12, not of 0"),
        ({"people": LARGEST_PARTY + 1}, BookError, "parties of 1 to 12, not of 13"),
        ({"name": " "}, BookError, "needs a name"),
        ({"time": "7 pm"}, OpeningError, "'7 pm' is not a time of day"),
        ({"day": "Monday"}, OpeningError, "closed on Mondays"),
        ({"day": "2025-12-01"}, OpeningError, "is over"),
    ],
)
def test_what_cannot_be_booked_is_said_and_not_booked(book, wrong, error, message):
    with pytest.raises(error, match=message):
        reserve(book, **wrong)
    assert book.standing() == []


def test_what_cannot_be_changed_stays_as_it_was(book):
    reserve(book)
    for wrong in ({"day": "Monday"}, {"time": "16:00"}, {"people": 13}):
        with pytest.raises((BookError, OpeningError)):
            book.change("047", **wrong)
    assert str(book.find("047")) == "order 047, Miller, Friday 2025-12-05 19:00, 4 people"


def test_a_book_on_disk_is_still_there(tmp_path):
    with closing(open_book(tmp_path / "book.db")) as first:
        reserve(first)
    with closing(open_book(tmp_path / "book.db")) as second:
        assert [str(r) for r in second.standing()] == ["order 047, Miller, Friday 2025-12-05 19:00, 4 people"]
        assert reserve(second).order == "048"


# -- tables


def test_a_party_gets_the_smallest_table_that_is_free(book):
    for name, people in (("a", 2), ("b", 5), ("c", 12), ("d", 5), ("e", 5)):
        reserve(book, name=name, people=people)
    assert tables(book) == {"a": {1}, "b": {9}, "c": {12}, "d": {10}, "e": {11}}


def test_a_table_is_taken_for_two_hours(book):
    fill(book, 12)
    for time in ("17:30", "18:45", "19:00", "20:45"):
        with pytest.raises(BookError, match=f"no table for 12 on Friday 2025-12-05 at {time}"):
            reserve(book, people=12, time=time)
    assert reserve(book, people=12, time="21:00").order == "048"
    assert reserve(book, people=12, day="Saturday").order == "049"


def test_the_nearest_free_times_come_first(book):
    fill(book, 12)
    wanted, free = book.look(day="Friday", time="19:00", people=12)
    assert wanted == datetime(2025, 12, 5, 19)
    assert [f"{each:%H:%M}" for each in free[:3]] == ["21:00", "21:15", "21:30"]
    assert wanted not in free
    _, free = book.look(day="today", time="13:00", people=12)
    assert [f"{each:%H:%M}" for each in free[:2]] == ["13:00", "12:45"]
    assert all(each > NOW for each in free)


def test_a_cancelled_reservation_gives_its_table_back(book):
    fill(book, 12)
    book.cancel("047")
    assert reserve(book, people=12).order == "048"


def test_a_change_needs_no_second_table(book):
    fill(book, 12)
    assert book.change("047", time="19:15").time == "19:15"
    reserve(book, people=12, time="21:30")
    with pytest.raises(BookError, match="no table"):
        book.change("048", time="20:00")
    assert book.find("048").time == "21:30"


def test_the_database_gives_no_table_away_twice(tmp_path):
    """Whatever the code above it does."""
    with closing(open_book(tmp_path / "book.db")) as book:
        reserve(book)
    with closing(sqlite3.connect(tmp_path / "book.db")) as database:
        (place,) = database.execute("SELECT * FROM places LIMIT 1")
        with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
            database.execute("INSERT INTO places VALUES (?, ?, ?)", place)
        with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
            database.execute("UPDATE reservations SET people = 13")


def test_two_that_see_the_same_table_free_get_two(book, monkeypatch):
    """The second looked before the first had written."""
    free = book._free(datetime(2025, 12, 5, 19), 4)
    monkeypatch.setattr(book, "_free", lambda *_: free)
    reserve(book, name="first")
    reserve(book, name="second")
    assert tables(book) == {"first": {5}, "second": {6}}
    monkeypatch.setattr(book, "_free", lambda *_: free[:2])
    with pytest.raises(BookError, match="no table"):
        reserve(book, name="third")
    assert len(book.standing()) == 2


def test_callers_at_the_same_time_get_each_table_once(tmp_path):
    """Each with a connection of its own, as the processes of a worker have."""
    callers, path = 12, tmp_path / "book.db"
    start = Barrier(callers)

    def call(number):
        start.wait()
        with closing(open_book(path)) as book:
            try:
                return reserve(book, name=f"guest {number}", people=5).order
            except BookError:
                return None

    with ThreadPoolExecutor(callers) as threads:
        orders = list(threads.map(call, range(callers)))
    large_enough = {number for number, seats in TABLES.items() if seats >= 5}
    assert Counter(order is not None for order in orders) == {True: len(large_enough), False: 8}
    with closing(open_book(path)) as book:
        assert sorted(tables(book).values()) == [{number} for number in sorted(large_enough)]


# -- deposits


def test_a_deposit_is_charged_once(book):
    reserve(book, people=8)
    assert str(book.charge_deposit("047")) == "80 euros for order 047"
    with pytest.raises(BookError, match="deposit for order 047 has been paid"):
        book.charge_deposit("Miller")


def test_a_small_party_pays_none(book):
    reserve(book, people=7)
    with pytest.raises(BookError, match="parties of 8 or more"):
        book.charge_deposit("047")
