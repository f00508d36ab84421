"""The benchmarks' own machinery: what gates, what the page keeps, that both ways do the same work."""

from __future__ import annotations

import re
from random import Random

import pytest

from tests.benchmarks import crash_states, durable_log, event_log
from tests.benchmarks.measure import Row, Spread, in_random_order
from tests.benchmarks.page import BEGIN, END, table, write_table


def row(median: float | None, **limits: object) -> Row:
    spread = None if median is None else Spread(median, median, median)
    return Row("work", "base", "×", spread, **limits)


@pytest.mark.parametrize(
    ("measured", "missed"),
    [
        (row(0.29, at_least=0.3), True),
        (row(0.30, at_least=0.3), False),
        (row(1.51, at_most=1.5), True),
        (row(1.50, at_most=1.5), False),
        (row(9.99), False),
        (row(9.99, at_most=1, gates=False), False),
        (row(None, at_most=1), True),
        (row(None, at_most=1, gates=False), False),
    ],
)
def test_a_target_gates_by_its_median(measured, missed):
    """A median beyond its target is missed, and so is a gating row that was not measured; the rest only reports."""
    assert measured.missed is missed


def test_every_variant_runs_once_a_round_in_changing_order():
    """Each round runs each variant once, and the order is drawn anew."""
    order: list[str] = []
    variants = {name: lambda name=name: order.append(name) or 1.0 for name in "abc"}
    rounds = list(in_random_order(variants, 4, Random(1)))

    assert rounds == [{"a": 1.0, "b": 1.0, "c": 1.0}] * 4
    each = ["".join(order[start : start + 3]) for start in range(0, 12, 3)]
    assert {"".join(sorted(one)) for one in each} == {"abc"}
    assert len(set(each)) > 1


def test_only_the_table_of_the_page_is_replaced(tmp_path):
    """What stands around the markers stays, and writing twice is writing once."""
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n", encoding="utf-8")
    for _ in range(2):
        write_table(page, "new")

    assert page.read_text(encoding="utf-8") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"


def test_a_page_without_markers_is_refused(tmp_path):
    """A page with no place for the table is named, and not touched."""
    page = tmp_path / "page.md"
    page.write_text(f"before {BEGIN}", encoding="utf-8")

    with pytest.raises(ValueError, match="no place for the table"):
        write_table(page, "new")
    assert page.read_text(encoding="utf-8") == f"before {BEGIN}"


def test_the_store_and_the_bare_loops_do_the_same_work(tmp_path):
    """On a small log every comparison runs, and finds equal bytes and equal events."""
    draw = Random(1)
    data = event_log.make_data(200, draw)
    rows = [
        *event_log.compare_appends(tmp_path, data, 1, draw),
        *event_log.compare_reads(tmp_path, data, 1, draw),
        *event_log.compare_sizes(tmp_path, data, [50, 400], 1, draw),
    ]

    assert [measured.spread is not None and measured.gates for measured in rows] == [True] * 3
    assert 190 <= (tmp_path / "bare.jsonl").stat().st_size / len(data) <= 230
    assert len(re.findall(r"^\| .*×", table(rows, 200, 1), re.MULTILINE)) == 3


def test_durable_log_and_the_bare_loops_do_the_same_work(tmp_path):
    """On small logs every comparison without strangers runs: appends, reads, growth, a foreign file."""
    draw = Random(1)
    data = event_log.make_data(100, draw)
    rows = [
        *durable_log.compare_appends(tmp_path, data, 1, draw),
        *durable_log.compare_reads(tmp_path, data, 1, draw),
        *durable_log.compare_sizes(tmp_path, data, [50, 100], 10_000),
        durable_log.time_foreign(tmp_path, 10_000, 1, draw),
    ]

    assert [measured.spread is not None and measured.gates for measured in rows] == [True] * 9


BAD_SECOND_LINES = [
    b"\xff",
    b"{",
    b'{"sequence":2,"type":"t","data":NaN}',
    b'{"sequence":2,"type":"t","data":1e400}',
    b'{"sequence":2,"type":"t","data":{"a":1,"a":1}}',
    b'{"sequence":2,"type":"t","data":' + b"[" * 101 + b"]" * 101 + b"}",
    b'{"sequence":2,"type":"t"}',
    b'{"sequence":true,"type":"t","data":1}',
    b'{"sequence":2.0,"type":"t","data":1}',
    b'{"sequence":3,"type":"t","data":1}',
    b'{"sequence":2,"type":" ","data":1}',
    b'\xef\xbb\xbf{"sequence":2,"type":"t","data":1}',
]


@pytest.mark.parametrize("line", BAD_SECOND_LINES)
def test_the_bare_reader_makes_the_checks_it_claims(tmp_path, line):
    """The base of the read ratio refuses what the store refuses; else the ratio would flatter it."""
    path = tmp_path / "log.jsonl"
    path.write_bytes(b'{"sequence":1,"type":"t","data":1}\n' + line + b"\n")

    with pytest.raises((ValueError, RecursionError)):
        event_log.read_bare(path)


def test_crash_states_are_listed_in_full_and_in_part():
    """Both listings run, each with its ratio to the bare loop, which gates, and its speed, which only reports."""
    rows = list(crash_states.measure(1, Random(1)))

    assert [(row.unit, row.gates, row.spread is not None) for row in rows] == [
        ("×", True, True),
        ("/s", False, True),
    ] * 2
