"""The matrix of `movie bench`: names, selection, and commands that the workloads understand."""

import pytest

from movie.bench.cells import Cell, selected
from movie.bench.matrix import FULL, QUICK
from movie.errors import InputError
from movie.workloads.options import options, parser

ALL = [*FULL, *QUICK]


@pytest.mark.parametrize("cells", [FULL, QUICK])
def test_names_tell_cells_apart(cells):
    assert len({cell.name for cell in cells}) == len(cells)


def test_every_kind_of_training_is_there():
    assert {cell.framework for cell in FULL} == {
        "hf", "zero3", "fsdp1", "fsdp2", "moe", "vision", "compile", "graphs", "rlhf", "rollouts", "diffusion", "micro",
        "packed", "evaluating", "checkpoints", "rlhf-zero3",
    }  # fmt: skip
    assert {letter for cell in FULL for letter in cell.strategy} == set("NRLOZ")
    for model in ("opt-13b", "codegen-6b", "llama3-8b", "gpt-neox-20b", "qwen2-1.5b", "mobilellm-1b"):
        assert any(cell.workload == model for cell in FULL)
    assert {cell.ranks for cell in FULL} >= {1, 2, 4, 8, 16}


@pytest.mark.parametrize("cell", ALL, ids=lambda cell: cell.name)
def test_a_command_says_what_the_cell_says(cell):
    first = next(number for number, part in enumerate(cell.command) if part.startswith("movie.workloads."))
    given = options(parser("", model="", batch=0).parse_args(cell.command[first + 1 :]))
    assert (given.model, given.batch, given.length, given.lengths, given.iterations) == (
        cell.workload,
        cell.batch,
        cell.length,
        cell.lengths,
        cell.iterations,
    )
    assert set(given.strategy) - {"N"} == set(cell.strategy) - {"N", "Z"}
    assert ("Z" in cell.strategy) == (cell.framework in {"zero3", "fsdp1", "fsdp2", "checkpoints", "rlhf-zero3"})
    assert cell.ranks == 1 or str(cell.ranks) in cell.command[:first]
    if cell.counting:
        assert cell.counting[2] == f"movie.workloads.{cell.counter}"
        assert cell.counting[-len(cell.command) + first + 1 :] == cell.command[first + 1 :]


def test_data_makes_an_equal_cell():
    assert Cell(**QUICK[0].as_data()) == QUICK[0]


def test_selection():
    assert selected(FULL, "") == list(FULL)
    sharded = selected(FULL, "opt-*/fsdp2/*")
    assert sharded
    assert {cell.lengths for cell in FULL} == {"fix", "var", "tail"}
    assert all(cell.framework == "fsdp2" for cell in sharded)
    assert selected(FULL, FULL[3].name) == [FULL[3]]
    with pytest.raises(InputError, match="matches none"):
        selected(FULL, "opt-175b/*")
