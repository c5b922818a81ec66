"""The command line itself, whichever command is asked for."""

import os
import signal
import subprocess
import sys
import time


def test_an_interrupt_while_it_is_being_loaded_prints_nothing(tmp_path):
    """Something that the command line imports takes long, as everything does on a cold disk."""
    (tmp_path / "typer.py").write_text("import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(60)\n")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", "from movie.__main__ import main; main()"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment
    ) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "loading").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert (output, errors) == ("", "")
