"""A livekit-agents that safe_session doesn't work with is one clear error."""

import importlib
from importlib.metadata import version

import pytest

from safe_session import UnsupportedLivekitError, _livekit

FOUND = version("livekit-agents")


@pytest.mark.parametrize("found", ["0.12.3", "1.5.9", "1.9.0", "2.0.0", "unknown"])
def test_a_release_out_of_the_range(found):
    with pytest.raises(UnsupportedLivekitError) as error:
        _livekit.check(found, ())
    assert f"found {found}" in str(error.value)
    assert ">=1.6.0,<1.9" in str(error.value)
    assert "pip install 'livekit-agents>=1.6.0,<1.9'" in str(error.value)


@pytest.mark.parametrize("found", ["1.6.0", "1.6.6", "1.7.1", "1.8.0", "1.8.9", "1.8.10"])
def test_a_release_in_the_range(found):
    _livekit.check(found, ())


def test_it_is_an_import_error():
    assert issubclass(UnsupportedLivekitError, ImportError)


def test_the_installed_release_has_every_seam():
    _livekit.check(FOUND)


def seams(which):
    chosen = [seam for seam in _livekit._SEAMS if which(seam)]
    return pytest.mark.parametrize("seam", chosen, ids=lambda seam: seam.where.partition(":")[2])


@seams(lambda seam: True)
def test_a_seam_that_is_gone(monkeypatch, seam):
    """The outermost name of it: a class or a function of livekit's that has moved or was renamed."""
    module, _, path = seam.where.partition(":")
    monkeypatch.delattr(importlib.import_module(module), path.partition(".")[0])
    with pytest.raises(UnsupportedLivekitError) as error:
        _livekit.check(FOUND)
    assert f"found {FOUND}" in str(error.value)
    assert path.partition(".")[0] in str(error.value)


@seams(lambda seam: "." in seam.where.partition(":")[2])
def test_a_seam_that_is_empty(monkeypatch, seam):
    """Its class is there and has nothing in it any more."""
    module, _, path = seam.where.partition(":")
    name = path.partition(".")[0]
    monkeypatch.setattr(importlib.import_module(module), name, type(name, (), {}))
    with pytest.raises(UnsupportedLivekitError, match=f"found {FOUND}"):
        _livekit.check(FOUND, [seam])


@seams(lambda seam: seam.parameters or seam.sets)
def test_a_seam_that_has_changed(monkeypatch, seam):
    """It is there, and neither takes nor sets what is relied on."""
    module, _, path = seam.where.partition(":")
    owner = importlib.import_module(module)
    *outer, name = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    monkeypatch.setattr(owner, name, lambda: None)
    with pytest.raises(UnsupportedLivekitError) as error:
        _livekit.check(FOUND, [seam])
    assert f"{seam.where} lacks {', '.join([*seam.parameters, *seam.sets])}" in str(error.value)
