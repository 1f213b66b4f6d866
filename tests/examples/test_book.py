"""The restaurant's reservations."""

import pytest

from examples.restaurant.book import LARGEST_PARTY, SEATS, Book, BookError


@pytest.fixture
def book():
    book = Book()
    yield book
    book.close()


def reserve(book, name="Miller", people=4, day="Friday", time="19:00"):
    return book.create(name=name, day=day, time=time, people=people)


def test_order_numbers_begin_at_047_and_go_on(book):
    assert [reserve(book).order, reserve(book).order] == ["047", "048"]


def test_a_number_is_not_given_twice(book):
    book.cancel(reserve(book).order)
    assert reserve(book).order == "048"


def test_find_by_name_in_any_case_or_by_number(book):
    made = reserve(book, name="王")
    assert book.find("王").number == book.find("047").number == made.number
    reserve(book, name="Miller")
    assert book.find("miller").order == "048"


def test_change_keeps_the_rest(book):
    reserve(book)
    assert str(book.change("047", people=6)) == "order 047, Miller, Friday 19:00, 6 people"
    assert (
        str(book.change("Miller", day="Sunday", time="20:30")) == "order 047, Miller, Sunday 20:30, 6 people"
    )
    assert book.find("047").people == 6


def test_a_cancelled_reservation_stands_no_more(book):
    reserve(book)
    book.cancel("Miller")
    assert book.standing() == []
    with pytest.raises(BookError, match="no reservation 'Miller'"):
        book.find("Miller")


def test_seats_are_counted(book):
    reserve(book, people=LARGEST_PARTY)
    reserve(book, people=LARGEST_PARTY - 4)
    assert book.seats_left("Friday", "19:00") == 4 == SEATS - 2 * LARGEST_PARTY + 4
    assert book.seats_left("Friday", "20:00") == SEATS
    with pytest.raises(BookError, match="no table for 5 on Friday at 19:00"):
        reserve(book, people=5)


def test_a_change_beside_itself_needs_no_second_table(book):
    reserve(book, people=LARGEST_PARTY)
    reserve(book, people=LARGEST_PARTY - 2)
    assert book.change("048", people=LARGEST_PARTY).people == LARGEST_PARTY
    reserve(book, people=2, time="20:00")
    with pytest.raises(BookError, match="no table"):
        book.change("049", time="19:00")
    assert book.find("049").time == "20:00"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"people": 0}, "parties of 1 to 12, not 0"),
        ({"people": 13}, "parties of 1 to 12, not 13"),
        ({"time": "7 pm"}, "'7 pm' is not a time of day"),
        ({"time": "25:00"}, "'25:00' is not a time of day"),
    ],
)
def test_what_cannot_be_booked_is_said_and_not_booked(book, wrong, message):
    with pytest.raises(BookError, match=message):
        reserve(book, **wrong)
    assert book.standing() == []


def test_two_of_one_name_are_not_guessed_at(book):
    reserve(book)
    reserve(book)
    with pytest.raises(BookError, match="several reservations 'Miller': 047, 048"):
        book.cancel("Miller")


def test_a_book_on_disk_is_still_there(tmp_path):
    first = Book(tmp_path / "book.db")
    reserve(first)
    first.close()
    second = Book(tmp_path / "book.db")
    assert [str(r) for r in second.standing()] == ["order 047, Miller, Friday 19:00, 4 people"]
    assert reserve(second).order == "048"
    second.close()
