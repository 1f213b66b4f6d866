"""The reservations of the restaurant, in SQLite."""

from __future__ import annotations

import re
from pathlib import Path

from sqlalchemy import create_engine, func, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column

FIRST_NUMBER = 47
SEATS = 24
LARGEST_PARTY = 12


class BookError(Exception):
    """Why a reservation could not be made, changed or found; worded for the caller."""


class Base(DeclarativeBase):
    """What SQLAlchemy hangs the tables on."""


class Reservation(Base):
    """One order in the book. A cancelled one stays, with its number."""

    __tablename__ = "reservations"

    number: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    day: Mapped[str]
    time: Mapped[str]
    people: Mapped[int]
    cancelled: Mapped[bool] = mapped_column(default=False)

    @property
    def order(self) -> str:
        return f"{self.number:03}"

    def __str__(self) -> str:
        return f"order {self.order}, {self.name}, {self.day} {self.time}, {self.people} people"


class Book:
    """Create, change, cancel and find reservations. In memory unless a path is given."""

    def __init__(self, path: Path | None = None) -> None:
        self._engine = create_engine("sqlite://" if path is None else f"sqlite:///{path}")
        Base.metadata.create_all(self._engine)

    def close(self) -> None:
        self._engine.dispose()

    def create(self, *, name: str, day: str, time: str, people: int) -> Reservation:
        with self._transaction() as db:
            wanted = Reservation(name=name, day=day, time=time, people=people, cancelled=False)
            _check(db, wanted)
            wanted.number = db.scalar(select(func.max(Reservation.number) + 1)) or FIRST_NUMBER
            db.add(wanted)
        return wanted

    def change(
        self, order: str, *, day: str | None = None, time: str | None = None, people: int | None = None
    ) -> Reservation:
        with self._transaction() as db:
            reservation = _find(db, order)
            reservation.day = day or reservation.day
            reservation.time = time or reservation.time
            reservation.people = people if people is not None else reservation.people
            _check(db, reservation)
        return reservation

    def cancel(self, order: str) -> Reservation:
        with self._transaction() as db:
            reservation = _find(db, order)
            reservation.cancelled = True
        return reservation

    def find(self, name_or_order: str) -> Reservation:
        """Find the one standing reservation under a name or an order number."""
        with self._transaction() as db:
            return _find(db, name_or_order)

    def seats_left(self, day: str, time: str) -> int:
        with self._transaction() as db:
            return _seats_left(db, day, time)

    def standing(self) -> list[Reservation]:
        """Every reservation that has not been cancelled, in the order they were made."""
        with self._transaction() as db:
            return _standing(db)

    def _transaction(self) -> _Transaction:
        return _Transaction(self._engine, expire_on_commit=False, autoflush=False)


class _Transaction(Session):
    """A database session whose `with` block commits, or rolls back if it raises."""

    def __exit__(self, type_: object, value: object, traceback: object) -> None:
        try:
            self.rollback() if type_ else self.commit()
        finally:
            self.close()


def _standing(db: Session) -> list[Reservation]:
    query = select(Reservation).where(Reservation.cancelled.is_(False)).order_by(Reservation.number)
    return list(db.scalars(query))


def _seats_left(db: Session, day: str, time: str, *, besides: Reservation | None = None) -> int:
    taken = (r.people for r in _standing(db) if (r.day, r.time) == (day, time) and r is not besides)
    return SEATS - sum(taken)


def _check(db: Session, wanted: Reservation) -> None:
    if not 1 <= wanted.people <= LARGEST_PARTY:
        raise BookError(f"we seat parties of 1 to {LARGEST_PARTY}, not {wanted.people}")
    if not re.fullmatch(r"([01]\d|2[0-3]):[0-5]\d", wanted.time):
        raise BookError(f"{wanted.time!r} is not a time of day such as 19:00")
    if _seats_left(db, wanted.day, wanted.time, besides=wanted) < wanted.people:
        raise BookError(f"there is no table for {wanted.people} on {wanted.day} at {wanted.time}")


def _find(db: Session, name_or_order: str) -> Reservation:
    found = [r for r in _standing(db) if name_or_order.casefold() in {r.order, r.name.casefold()}]
    if not found:
        raise BookError(f"there is no reservation {name_or_order!r}")
    if len(found) > 1:
        orders = ", ".join(r.order for r in found)
        raise BookError(f"there are several reservations {name_or_order!r}: {orders}; ask for the number")
    return found[0]
