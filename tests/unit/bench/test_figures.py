import pytest

from bench.figures import (
    Figure,
    at_least,
    at_most,
    ratio_at_least,
    ratio_at_most,
    share_at_least,
    spread,
    table,
)


@pytest.mark.parametrize(
    ("figure", "expected"),
    [
        (Figure(name="", value=300, unit="/s", goals=(at_least(300),)), "met"),
        (Figure(name="", value=299, unit="/s", goals=(at_least(300),)), "MISSED"),
        (Figure(name="", value=12, unit="ms", goals=(at_most(12),)), "met"),
        (Figure(name="", value=13, unit="ms", goals=(at_most(12),)), "MISSED"),
        (Figure(name="", value=4, unit="s", reference=2, goals=(ratio_at_most(2),)), "met"),
        (Figure(name="", value=5, unit="s", reference=2, goals=(ratio_at_most(2),)), "MISSED"),
        (Figure(name="", value=144, unit="/s", limit=160, goals=(share_at_least(0.9),)), "met"),
        (Figure(name="", value=143, unit="/s", limit=160, goals=(share_at_least(0.9),)), "MISSED"),
        (Figure(name="", value=None, unit="MiB", goals=(at_most(30),)), ""),
        (Figure(name="", value=30, unit="MiB"), ""),
    ],
)
def test_a_goal_is_met_at_its_bound_and_missed_beyond_it(figure: Figure, expected: str) -> None:
    assert figure.result == expected


def test_of_several_goals_the_missed_ones_are_named() -> None:
    goals = (at_least(300), ratio_at_least(0.4))
    assert Figure(name="", value=320, unit="/s", reference=1000, goals=goals).result == "MISSED ratio ≥ 0.4"
    assert Figure(name="", value=320, unit="/s", reference=800, goals=goals).result == "met"
    assert Figure(name="", value=200, unit="/s", reference=1000, goals=goals).result == "MISSED"


def test_a_row_shows_value_reference_ratio_goal_share_and_note() -> None:
    figure = Figure(
        name="8 calls at once",
        value=120,
        unit="/s",
        reference=150,
        limit=160,
        goals=(share_at_least(0.9),),
        note="720 items",
    )
    assert figure.cells() == (
        "8 calls at once",
        "120 /s",
        "150 /s",
        "0.80",
        "≥ 0.9 of 160 /s",
        "MISSED; 0.75 of the limit; 720 items",
    )


def test_the_table_aligns_its_columns() -> None:
    text = table([Figure(name="a", value=1234, unit="ms"), Figure(name="longer", value=1.5, unit="ms")])
    assert text.splitlines() == [
        "figure  measured  reference  ratio  goal",
        "a        1234 ms",
        "longer   1.50 ms",
    ]


def test_the_spread_names_the_rounds_and_their_range() -> None:
    assert spread([215.2, 163.4, 208.0], "/s") == "median of 3; 163 to 215 /s"
    assert spread([215.2], "/s") == "once"
