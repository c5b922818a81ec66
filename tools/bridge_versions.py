"""Compiles the bridge against the headers of supported releases of torch, and prints how that went.

    make bridge-versions                                   the last release of each minor version
    python tools/bridge_versions.py 2.6.0 2.15.0           some
    python tools/bridge_versions.py --wheels FOLDER        those of the wheels that lie in a folder already

Nothing is installed, linked or run: a wheel for any machine has the headers, and the smallest is 0.1 GB. Needs a
C++ compiler, pip, and the headers of the CUDA runtime where `movie bridge build` finds them. Exits with 1 if the bridge
does not compile against a release; one that cannot be had is named with pip's reason.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from movie.errors import InputError
from movie.torch import bridge

# Torch changes the functions of its allocators from one minor version to the next.
RELEASES = ["2.6.0", "2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0", "2.12.1", "2.13.0", "2.14.1", "2.15.0"]
# The first that has the release is taken: wheels without CUDA are small.
PLATFORMS = ["macosx_11_0_arm64", "macosx_14_0_arm64", "manylinux_2_28_aarch64", "manylinux_2_28_x86_64"]
# Of builds with CUDA; it says how they were made, and nothing that the bridge needs.
GENERATED = "c10/cuda/impl/cuda_cmake_macros.h"


def download(release: str, folder: Path) -> tuple[Path | None, str]:
    """A wheel of the release, or why there is none."""
    reason = ""
    for platform in PLATFORMS:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary=:all:", "-d", str(folder)]
        command += ["--python-version", "3.11", "--implementation", "cp", "--platform", platform, f"torch=={release}"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode == 0:
            return next(folder.glob(f"torch-{release}*.whl")), ""
        reason = (result.stderr.strip().splitlines() or ["pip gives no reason"])[-1]
    return None, reason


def compile_against(wheel: Path, folder: Path) -> str:
    """What the compiler has against the bridge with the headers of this wheel; empty: nothing."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder, [name for name in archive.namelist() if name.startswith("torch/include/")])
    include = folder / "torch" / "include"
    generated = include / GENERATED
    if not generated.exists():
        generated.parent.mkdir(parents=True, exist_ok=True)
        generated.write_text("#pragma once\n")
    return bridge.syntax_problem(include)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("releases", nargs="*", default=RELEASES, metavar="RELEASE")
    parser.add_argument("--wheels", type=Path, metavar="FOLDER", help="wheels that are there; nothing is downloaded")
    arguments = parser.parse_args()
    try:
        bridge.check_tools()
    except InputError as error:
        print(error, file=sys.stderr)
        return 2
    failed = False
    with tempfile.TemporaryDirectory(prefix="movie-bridge-") as name:
        work = Path(name)
        if arguments.wheels:
            found = [(wheel.name.split("-")[1], wheel, "") for wheel in sorted(arguments.wheels.glob("torch-*.whl"))]
        else:
            found = [(release, *download(release, work)) for release in arguments.releases]
        for release, wheel, reason in found:
            if wheel is None:
                print(f"{release:8} not tried: {reason}")
                continue
            problem = compile_against(wheel, work / release)
            failed |= bool(problem)
            print(f"{release:8} {problem or 'compiles'}  [{os.path.basename(wheel)}]", flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
