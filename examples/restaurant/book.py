"""The reservations of the restaurant, in SQLite."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from types import MappingProxyType

from sqlalchemy import DDL, CheckConstraint, ForeignKey, create_engine, event, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from .opening import QUARTER, seating, seatings_on

FIRST_NUMBER = 47
TABLES = MappingProxyType(
    {1: 2, 2: 2, 3: 2, 4: 2, 5: 4, 6: 4, 7: 4, 8: 4, 9: 6, 10: 6, 11: 8, 12: 12}
)  # the seats at each table, by its number
LARGEST_PARTY = max(TABLES.values())
STAY = timedelta(hours=2)
DEPOSIT = 10  # euros a guest, for the parties that pay one
PARTY_WITH_DEPOSIT = 8


class BookError(Exception):
    """Why a reservation could not be made, changed or found; worded for the caller."""


class Base(DeclarativeBase):
    """What SQLAlchemy hangs the tables on."""


class Reservation(Base):
    """One order in the book. A cancelled one stays, with its number."""

    __tablename__ = "reservations"
    __table_args__ = (
        CheckConstraint(f"people BETWEEN 1 AND {LARGEST_PARTY}"),
        {"sqlite_autoincrement": True},  # no number is ever given twice
    )

    number: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]
    starts: Mapped[datetime]
    people: Mapped[int]
    cancelled: Mapped[bool] = mapped_column(default=False)
    places: Mapped[list[Place]] = relationship(cascade="all, delete-orphan", lazy="selectin")

    @property
    def order(self) -> str:
        return f"{self.number:03}"

    @property
    def day(self) -> str:
        return f"{self.starts:%A}"

    @property
    def date(self) -> str:
        return f"{self.starts:%Y-%m-%d}"

    @property
    def time(self) -> str:
        return f"{self.starts:%H:%M}"

    def __str__(self) -> str:
        return f"order {self.order}, {self.name}, {self.day} {self.date} {self.time}, {self.people} people"


class Place(Base):
    """A table for a quarter of an hour, given to one reservation: the key allows for no second one."""

    __tablename__ = "places"

    table_number: Mapped[int] = mapped_column(primary_key=True)
    quarter: Mapped[datetime] = mapped_column(primary_key=True)
    number: Mapped[int] = mapped_column(ForeignKey(Reservation.number))


class Deposit(Base):
    """What was charged for a reservation. It is charged once, whoever asks for it: the number is the key."""

    __tablename__ = "deposits"

    number: Mapped[int] = mapped_column(ForeignKey(Reservation.number), primary_key=True)
    euros: Mapped[int]

    def __str__(self) -> str:
        return f"{self.euros} euros for order {self.number:03}"


event.listen(
    Reservation.__table__,
    "after_create",
    DDL(f"INSERT INTO sqlite_sequence (name, seq) VALUES ('reservations', {FIRST_NUMBER - 1})"),
)


class Book:
    """Create, change, cancel and find reservations. Several processes may have the same book open.

    Args:
        path: The file; without one, the book is in memory.
        now: The time at the restaurant.
    """

    def __init__(self, path: Path | None = None, *, now: Callable[[], datetime] = datetime.now) -> None:
        self.now = now
        self._engine = create_engine("sqlite://" if path is None else f"sqlite:///{path}")
        with self._engine.connect() as connection:
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # or two that open a new book would both make it
            Base.metadata.create_all(connection)
            connection.commit()

    def close(self) -> None:
        self._engine.dispose()

    def create(self, *, name: str, day: str, time: str, people: int) -> Reservation:
        if not name.strip():
            raise BookError("a reservation needs a name")
        starts = self._starts(day, time, people)
        return self._seat(starts, people, lambda _: Reservation(name=name.strip()))

    def change(
        self, order: str, *, day: str | None = None, time: str | None = None, people: int | None = None
    ) -> Reservation:
        before = self.find(order)
        people = before.people if people is None else people
        starts = self._starts(day or before.date, time or before.time, people)
        return self._seat(starts, people, lambda db: self._find(db, before.order), besides=before.number)

    def cancel(self, order: str) -> Reservation:
        """Cancel a reservation; its table is free again."""
        with self._transaction() as db:
            reservation = self._find(db, order)
            reservation.cancelled = True
            reservation.places.clear()
        return reservation

    def charge_deposit(self, order: str) -> Deposit:
        """Charge the deposit that a large party pays."""
        reservation = self.find(order)
        if reservation.people < PARTY_WITH_DEPOSIT:
            raise BookError(f"only parties of {PARTY_WITH_DEPOSIT} or more pay a deposit")
        deposit = Deposit(number=reservation.number, euros=DEPOSIT * reservation.people)
        try:
            with self._transaction() as db:
                db.add(deposit)
        except IntegrityError:
            raise BookError(f"the deposit for order {reservation.order} has been paid") from None
        return deposit

    def find(self, name_or_order: str) -> Reservation:
        """Find the one reservation to come that has this name or order number."""
        with self._transaction() as db:
            return self._find(db, name_or_order)

    def look(self, *, day: str, time: str, people: int) -> tuple[datetime, list[datetime]]:
        """When a party would come, and when that day there is a table for it, the nearest time first."""
        wanted = self._starts(day, time, people)
        to_come = [each for each in seatings_on(wanted.date()) if each > self.now()]
        free = [each for each in to_come if self._free(each, people)]
        return wanted, sorted(free, key=lambda each: abs(each - wanted))

    def standing(self) -> list[Reservation]:
        """Every reservation that has not been cancelled, in the order they were made."""
        with self._transaction() as db:
            return _standing(db)

    def _starts(self, day: str, time: str, people: int) -> datetime:
        if not 1 <= people <= LARGEST_PARTY:
            raise BookError(f"there are tables for parties of 1 to {LARGEST_PARTY}, not of {people}")
        return seating(day, time, self.now())

    def _free(self, starts: datetime, people: int, besides: int | None = None) -> list[int]:
        """The tables that a party can have, the smallest first."""
        then = Place.quarter.in_(_quarters(starts)), Place.number != besides
        with self._transaction() as db:
            taken = set(db.scalars(select(Place.table_number).where(*then)))
        return [table for table, seats in TABLES.items() if seats >= people and table not in taken]

    def _seat(
        self,
        starts: datetime,
        people: int,
        reservation_in: Callable[[Session], Reservation],
        besides: int | None = None,
    ) -> Reservation:
        """Give a party a table, and write down its reservation."""
        for table in self._free(starts, people, besides):
            try:
                with self._transaction() as db:
                    reservation = reservation_in(db)
                    reservation.places.clear()
                    db.flush()
                    reservation.starts, reservation.people = starts, people
                    places = [Place(table_number=table, quarter=quarter) for quarter in _quarters(starts)]
                    reservation.places.extend(places)
                    db.add(reservation)
            except IntegrityError:
                continue  # in this moment, another call was given the table
            return reservation
        raise BookError(f"there is no table for {people} on {starts:%A} {starts:%Y-%m-%d} at {starts:%H:%M}")

    def _find(self, db: Session, name_or_order: str) -> Reservation:
        wanted = name_or_order.strip().casefold()
        number = int(wanted) if wanted.isdecimal() else None
        to_come = [each for each in _standing(db) if each.starts > self.now()]
        found = [each for each in to_come if each.number == number or each.name.casefold() == wanted]
        if not found:
            raise BookError(f"there is no reservation {name_or_order!r}")
        if len(found) > 1:
            orders = ", ".join(each.order for each in found)
            raise BookError(f"there are several reservations {name_or_order!r}: {orders}; ask for the number")
        return found[0]

    def _transaction(self) -> _Transaction:
        return _Transaction(self._engine, expire_on_commit=False, autoflush=False)


class _Transaction(Session):
    """A database session whose `with` block commits, or rolls back if it raises."""

    def __exit__(self, type_: object, value: object, traceback: object) -> None:
        try:
            self.rollback() if type_ else self.commit()
        finally:
            self.close()


def _quarters(starts: datetime) -> list[datetime]:
    """The quarters of an hour for which guests have their table."""
    return [starts + n * QUARTER for n in range(STAY // QUARTER)]


def _standing(db: Session) -> list[Reservation]:
    query = select(Reservation).where(Reservation.cancelled.is_(False)).order_by(Reservation.number)
    return list(db.scalars(query))
