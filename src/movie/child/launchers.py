"""Launchers of several processes start the first of them alone.

A phantom has no other card to talk to, and one rank's memory is what its own calls make it. So `torchrun`,
`accelerate launch`, `deepspeed` and whatever else launches through torch's elastic agent becomes rank 0 of the world
that it would have started.
"""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from .after_import import after_import


def arrange() -> None:
    """Launchers that are imported from now on start one process."""
    after_import("torch.distributed.launcher.api", _elastic)
    after_import("deepspeed.launcher.runner", _deepspeed)


def _elastic(api: Any) -> None:
    def call(launch: Any, *args: Any) -> Any:
        config, entrypoint = launch._config, launch._entrypoint
        become_rank_0(config.max_nodes * config.nproc_per_node, config.nproc_per_node, config.run_id)
        if callable(entrypoint):
            return {0: entrypoint(*args)}
        return _become([entrypoint, *map(str, args)])

    api.elastic_launch.__call__ = call


def _deepspeed(runner: Any) -> None:
    """Its launcher knows the script and the cards on this machine; hosts of a hostfile are as many again."""

    def main(args: Any = None) -> NoReturn:
        parsed = runner.parse_args(args)
        hosts = runner.fetch_hostfile(parsed.hostfile) or {}
        on_one = parsed.num_gpus if parsed.num_gpus > 0 else max([*hosts.values(), 1])
        nodes = parsed.num_nodes if parsed.num_nodes > 0 else max(len(hosts), 1)
        become_rank_0(nodes * on_one, on_one, "deepspeed")
        command = [] if parsed.no_python else [sys.executable, "-u"]
        if parsed.module:
            command.append("-m")
        rank = [] if parsed.no_local_rank else ["--local_rank=0"]
        _become([*command, parsed.user_script, *rank, *parsed.user_args])

    runner.main = main


def become_rank_0(world: int, on_one_node: int, run: str) -> None:
    """Sets the environment of the first process of a launch."""
    os.environ.update(
        {
            "RANK": "0",
            "WORLD_SIZE": str(world),
            "LOCAL_RANK": "0",
            "LOCAL_WORLD_SIZE": str(on_one_node),
            "GROUP_RANK": "0",
            "GROUP_WORLD_SIZE": str(max(world // max(on_one_node, 1), 1)),
            "ROLE_RANK": "0",
            "ROLE_WORLD_SIZE": str(world),
            "ROLE_NAME": "default",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": os.environ.get("MASTER_PORT", "29500"),
            "TORCHELASTIC_RUN_ID": run or "movie",
            "TORCHELASTIC_RESTART_COUNT": "0",
            "TORCHELASTIC_MAX_RESTARTS": "0",
        }
    )
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if world > 1:
        print(
            f"movie: rank 0 of {world} runs alone: its peers exist in name only, and so does what they would send",
            file=sys.stderr,
            flush=True,
        )


def _become(command: list[str]) -> NoReturn:
    sys.stdout.flush()
    os.execvp(command[0], command)
