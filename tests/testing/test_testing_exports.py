from safe_session import testing


def test_all_is_sorted_and_there() -> None:
    assert testing.__all__ == sorted(testing.__all__, key=lambda name: (name[0].islower(), name))
    assert all(hasattr(testing, name) for name in testing.__all__)
    assert all(getattr(testing, name).__doc__ for name in testing.__all__)
