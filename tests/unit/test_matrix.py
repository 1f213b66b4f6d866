"""The table of releases that the suite is run on, and the page that is written from the counts."""

import re
import sys
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from safe_session import _livekit

if sys.version_info < (3, 11):
    pytest.skip("tomllib comes with Python 3.11", allow_module_level=True)

import tomllib

from tests.matrix import page

ROOT = Path(page.__file__).parents[2]
MATRIX = tomllib.loads((ROOT / "tests" / "matrix" / "releases.toml").read_text())
PAGE = "# Title\n\n<!-- safe -->\nold\n<!-- /safe -->\n\nThe end.\n"


def test_every_release_is_supported():
    assert set(SpecifierSet(_livekit.SUPPORTED).filter(MATRIX["releases"])) == set(MATRIX["releases"])


def test_the_page_names_the_first_and_the_last_release_and_how_many_there_are():
    releases = MATRIX["releases"]
    text = (ROOT / "docs" / "compatibility.md").read_text()
    assert f"{releases[0]} to {releases[-1]}, which are {len(releases)} releases" in text


def test_ci_runs_the_first_and_the_last_of_each_line():
    lines = {}
    for release in MATRIX["releases"]:
        lines.setdefault(release.rpartition(".")[0], []).append(release)
    # the lowest dependencies hold the first of all, and uv.lock the newest
    run = {*MATRIX["ci"], MATRIX["releases"][0], MATRIX["releases"][-1]}
    assert run == {end for of_line in lines.values() for end in (of_line[0], of_line[-1])}


@pytest.mark.parametrize("pin", MATRIX["pins"], ids=lambda pin: pin["requirement"])
def test_every_pin_is_for_some_release(pin):
    assert list(SpecifierSet(pin["releases"]).filter(MATRIX["releases"]))


def test_a_row_for_each_release_and_a_column_for_each_guarantee_that_was_played():
    counts = {
        "1.6.0": {"G2": {"safe": [3, 3], "plain": [1, 2]}, "G10": {"safe": [4, 4], "plain": [0, 0]}},
        "1.6.1": {"G2": {"safe": [3, 3], "plain": [2, 2]}, "G10": {"safe": [4, 4], "plain": [0, 0]}},
    }
    assert page.counted(counts, "safe") == [
        ["livekit-agents", "G2", "G10"],
        ["1.6.0", "3/3", "4/4"],
        ["1.6.1", "3/3", "4/4"],
    ]
    assert page.counted(counts, "plain") == [["livekit-agents", "G2"], ["1.6.0", "1/2"], ["1.6.1", "2/2"]]


def test_the_table_takes_the_place_of_the_old_one():
    table = page.table([["a", "b"], ["1", "2"]])
    written = page.replaced(PAGE, "safe", table)
    assert re.search(
        r"<!-- safe -->\s+\| a \| b \|\n\| --- \| --- \|\n\| 1 \| 2 \|\s+<!-- /safe -->", written
    )
    assert "old" not in written
    assert page.replaced(written, "safe", table) == written
    assert written.endswith("The end.\n")


def test_a_page_with_no_place_for_it():
    with pytest.raises(SystemExit, match="no place for the table 'plain'"):
        page.replaced(PAGE, "plain", "")
