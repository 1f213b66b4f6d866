"""Writes the tables of docs/compatibility.md: ``python tests/matrix/page.py RESULTS``, a folder of counts.

They hold the releases that have been run. What stands around the tables is written by hand, and stays.
"""

import json
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import tomllib

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "compatibility.md"

Counts: TypeAlias = dict[str, dict[str, list[int]]]
"""Of one release: by guarantee and class, how many timelines passed and how many there are."""


def main(results: Path) -> None:
    matrix = tomllib.loads((ROOT / "tests" / "matrix" / "releases.toml").read_text())
    files = {release: results / f"{release}.json" for release in matrix["releases"]}
    counts = {release: json.loads(file.read_text()) for release, file in files.items() if file.exists()}
    page = PAGE.read_text()
    for name, rows in {
        "safe": counted(counts, "safe"),
        "plain": counted(counts, "plain"),
        "pins": pinned(matrix["pins"]),
    }.items():
        page = replaced(page, name, table(rows))
    PAGE.write_text(page)


def counted(counts: dict[str, Counts], session: str) -> list[list[str]]:
    """A row for each release, with how many timelines of each guarantee passed on that class."""
    guarantees = sorted({each for of in counts.values() for each in of}, key=lambda each: int(each[1:]))
    tried = [each for each in guarantees if any(of[each][session][1] for of in counts.values())]
    rows = [
        [release, *("/".join(map(str, of[each][session])) for each in tried)]
        for release, of in counts.items()
    ]
    return [["livekit-agents", *tried], *rows]


def pinned(pins: Iterable[dict[str, Any]]) -> list[list[str]]:
    rows = [[f"`{pin['releases']}`", f"`{pin['requirement']}`", pin["reason"]] for pin in pins]
    return [["livekit-agents", "takes", "since"], *rows]


def table(rows: list[list[str]]) -> str:
    head, *rest = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *rest])


def replaced(page: str, name: str, text: str) -> str:
    """The page with `text` in the place of what stands between the two comments of that name."""
    marked = re.compile(f"(?<=<!-- {name} -->\n).*?(?=<!-- /{name} -->)", re.DOTALL)
    if not marked.search(page):
        raise SystemExit(f"{PAGE} has no place for the table {name!r}")
    return marked.sub(lambda _: f"\n{text}\n\n", page)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
