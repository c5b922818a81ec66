"""What a watched process tells the one that watches: files in a folder, whole or not there, named by process."""

from __future__ import annotations

import json
import os
import pickle
import sys
from typing import Any, NoReturn

PROBLEM_EXIT = 86  # the exit code of a process that stopped for a problem


class Folder:
    """The folder. Files of process 1234: `1234.snapshot` (a pickle), `1234.facts` and `1234.problem` (JSON)."""

    def __init__(self, path: str) -> None:
        self._path = path

    def write_facts(self, facts: dict[str, Any]) -> None:
        self._write("facts", json.dumps(facts).encode())

    def write_snapshot(self, snapshot: Any) -> None:
        self._write("snapshot", pickle.dumps(snapshot, protocol=4))

    def stop(self, problem: str) -> NoReturn:
        """Ends the process: the program cannot be watched, for a reason that the watcher prints."""
        self._write("problem", json.dumps(problem).encode())
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(PROBLEM_EXIT)

    def _write(self, kind: str, data: bytes) -> None:
        path = os.path.join(self._path, f"{os.getpid()}.{kind}")
        with open(path + ".part", "wb") as file:
            file.write(data)
        os.replace(path + ".part", path)
