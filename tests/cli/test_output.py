import json
import math

import numpy as np
import pytest

from evenscore.cli.output import print_json, print_lines, print_table, printable


def test_json_is_valid_whatever_the_numbers(capsys):
    print_json(
        {"a": math.nan, "b": [np.float32(1.5), np.int64(2)], "c": (math.inf, None), "d": np.array([1.0, np.nan])}
    )
    assert json.loads(capsys.readouterr().out) == {"a": None, "b": [1.5, 2], "c": [None, None], "d": [1.0, None]}


def test_tables_show_what_users_wrote_and_not_what_rich_makes_of_it(capsys):
    print_table([("[red]id[/red]", ":smile:")], header=("id", "x"), title="[bold]file[/bold]")
    out = capsys.readouterr().out
    assert "[red]id[/red]" in out
    assert ":smile:" in out
    assert "[bold]file[/bold]" in out


def test_control_codes_do_not_reach_the_terminal(capsys):
    print_lines(["id \x1b[31mred\x07", "sǿren 日本語"])
    assert capsys.readouterr().out == "id \\x1b[31mred\\x07\nsǿren 日本語\n"
    assert printable("a\r\nb") == r"a\r\nb"


def test_a_wide_table_in_a_pipe_is_not_folded_at_80(capsys):
    print_table([("a" * 120, "b")])
    assert "a" * 120 in capsys.readouterr().out


@pytest.mark.parametrize("width", [60, 80, 120])
def test_numbers_are_never_folded(capsys, monkeypatch, width):
    monkeypatch.setattr("evenscore.cli.output.PIPE_WIDTH", width)
    header = ["", *(f"metric {place}" for place in range(8))]
    rows = [[f"a long name {row} " * 5, *(f"{row}.{place}345..6.{place}890" for place in range(8))] for row in range(3)]
    print_table(rows, header=header, numbers=True)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert all(cell in out for row in [header, *rows] for cell in row[1:])
    assert all(out.count(cell) == 1 for row in rows for cell in row[1:])


def test_an_empty_table_prints_no_rows(capsys):
    print_table([])
    assert capsys.readouterr().out.strip() == ""
