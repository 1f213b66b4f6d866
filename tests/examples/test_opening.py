"""When guests are seated, and which day a caller means."""

from datetime import date, datetime

import pytest

from examples.restaurant.opening import CLOSED, OpeningError, seating, seatings_on

NOW = datetime(2025, 12, 2, 18, 0)  # a Tuesday


@pytest.mark.parametrize(
    ("day", "at", "starts"),
    [
        ("Friday", "19:00", "2025-12-05 19:00"),
        ("friday", "19:15", "2025-12-05 19:15"),
        ("Tuesday", "18:15", "2025-12-02 18:15"),
        ("Tuesday", "18:00", "2025-12-09 18:00"),  # this week's has just begun
        ("Tuesday", "12:00", "2025-12-09 12:00"),
        ("today", "20:00", "2025-12-02 20:00"),
        ("Tomorrow", "12:30", "2025-12-03 12:30"),
        ("2025-12-24", "21:30", "2025-12-24 21:30"),
        ("12-24", "17:30", "2025-12-24 17:30"),
        ("01-02", "13:30", "2026-01-02 13:30"),  # the next one
    ],
)
def test_the_next_day_of_that_name(day, at, starts):
    assert seating(day, at, NOW) == datetime.fromisoformat(starts)


def test_the_29th_of_february_is_in_the_next_leap_year():
    assert seating("02-29", "19:00", datetime(2023, 12, 20)) == datetime(2024, 2, 29, 19)


@pytest.mark.parametrize(
    ("day", "at", "why"),
    [
        ("today", "17:45", "today at 17:45 is over"),
        ("2025-12-01", "19:00", "2025-12-01 at 19:00 is over"),
        ("2026-03-03", "19:00", "the next 90 days, not for 2026-03-03"),
        ("Monday", "19:00", "closed on Mondays"),
        ("12-08", "19:00", "closed on Mondays"),
        ("Friday", "16:00", "from 11:30 to 13:30 and from 17:30 to 21:30, .* not at 16:00"),
        ("Friday", "21:45", "not at 21:45"),
        ("Friday", "19:07", "each quarter of an hour, not at 19:07"),
        ("Friday", "7 pm", "'7 pm' is not a time of day"),
        ("Friday", "25:00", "'25:00' is not a time of day"),
        ("Fryday", "19:00", "'Fryday' is not a day"),
        ("2025-13-01", "19:00", "'2025-13-01' is not a day"),
        ("02-30", "19:00", "'02-30' is not a day"),
    ],
)
def test_what_cannot_be_is_said(day, at, why):
    with pytest.raises(OpeningError, match=why):
        seating(day, at, NOW)


def test_every_quarter_of_an_hour_but_on_the_day_that_is_closed():
    times = [f"{each:%H:%M}" for each in seatings_on(date(2025, 12, 5))]
    assert times[:2] == ["11:30", "11:45"]
    assert times[-2:] == ["21:15", "21:30"]
    assert "13:45" not in times
    assert list(seatings_on(date(2025, 12, 8))) == []
    assert f"{date(2025, 12, 8):%A}" == CLOSED
