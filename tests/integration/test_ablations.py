"""The ablation benchmark: its tables come from replays, and what people concluded survives a new run."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def ablations(*arguments):
    command = [sys.executable, ROOT / "benchmarks" / "ablations.py", *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=280)
    assert result.returncode == 0, result.stderr
    return result


def cells(line):
    return [cell.strip() for cell in line.strip("|\n").split("|")]


def test_a_quick_table_and_its_conclusion(tmp_path):
    target = tmp_path / "ablations.md"
    target.write_text("<!-- conclusion: policy -->\nLean is lean.\n<!-- end: policy -->\n")
    ablations("--quick", "--only", "policy", "--output", target)
    text = target.read_text()
    assert "<!-- conclusion: policy -->\nLean is lean.\n<!-- end: policy -->" in text
    assert "python benchmarks/ablations.py --quick --only policy" in text
    assert "`per-call`" in text
    table = [cells(line) for line in text.splitlines() if line.startswith("| ")]
    headings, rows = table[0], table[1:]
    assert [(row[0], row[1]) for row in rows] == [
        ("tight, 2", "auto"),
        ("tight, 2", "lean"),
        ("ample, 2", "auto"),
        ("ample, 2", "lean"),
    ]
    assert all(row[2] == "2 of 2" for row in rows)
    figures = {
        (row[0].split(",")[0], row[1]): dict(
            zip(headings[3:], (float(c.replace(",", "")) for c in row[3:]), strict=True)
        )
        for row in rows
    }
    used, mapped = "reserved / requested", "pages mapped in views"
    assert 1 <= figures["ample", "lean"][used] < figures["ample", "auto"][used] < 1.2
    assert 1 <= figures["tight", "auto"][used] < 1.02
    assert figures["ample", "auto"][mapped] < figures["ample", "lean"][mapped] / 4
    for of in figures.values():
        assert of["driver s to first peak"] <= of["driver s"]
        assert of["driver s last ¼"] <= of["driver s"]
