"""Writes native/phantom/symbols/*.txt: which functions of NVIDIA's libraries torch's own libraries import.

    python tools/phantom_symbols.py SOURCE...     merge what SOURCE imports into the lists
    python tools/phantom_symbols.py --check SOURCE...     exit with 1 if a list lacks a function that SOURCE imports
    python tools/phantom_symbols.py --exports FOLDER...   merge what NVIDIA's libraries in site-packages FOLDER offer

A SOURCE is a wheel (torch, triton, torchvision, ...) or a site-packages folder that holds such packages. Each is read
by itself, so that wheels which do not fit on the disk together can be fetched, read and removed one after the other:

    for v in 2.6.0 2.7.1; do
        pip download --no-deps torch==$v -d W && python tools/phantom_symbols.py W/*.whl; rm -r W
    done

The lists name the torch version beside each function. Undefined dynamic symbols are read from the ELF files. Functions
of the driver and of NVML are never linked against: the code looks them up by name, so they are found among the strings.

Extensions call functions that torch does not. They stand in the lists with no version beside them: without a definition
such a call would reach NVIDIA's own library, which knows nothing of the phantom.
"""

from __future__ import annotations

import argparse
import mmap
import re
import struct
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

LISTS = Path(__file__).parent.parent / "native/phantom/symbols"

# The first pattern that matches a name decides which list it goes to.
FAMILIES = {
    "cudart": (r"cuda[A-Z]|__cuda[A-Z]", "the CUDA runtime"),
    "cublaslt": (r"cublasLt", "cuBLASLt"),
    "cublas": (r"cublas", "cuBLAS"),
    "cudnn": (r"cudnn", "cuDNN"),
    "nccl": (r"p?nccl[A-Z]", "NCCL"),
    "nvml": (r"nvml[A-Z]", "NVML"),
    "cusparselt": (r"cusparseLt", "cuSPARSELt"),
    "cusparse": (r"cusparse", "cuSPARSE"),
    "cusolver": (r"cusolver", "cuSOLVER"),
    "cufft": (r"cufft", "cuFFT"),
    "curand": (r"curand[A-Z]", "cuRAND"),
    "cufile": (r"cuFile[A-Z]", "cuFile"),
    "cupti": (r"cupti[A-Z]", "CUPTI"),
    "nvshmem": (r"nvshmem", "NVSHMEM"),
    "cuda": (r"cu[A-Z]", "the CUDA driver"),
}
FAMILY = re.compile("|".join(f"(?P<{name}>{pattern})" for name, (pattern, _) in FAMILIES.items()))

# Libraries whose .rodata names functions that are looked up while the program runs.
LOOKED_UP = re.compile(rb"(?<![^\0])(?:cu[A-Z](?!da|FILE)|nvml[A-Z])\w{3,60}(?=\0)")
# Triton compiles this source, or text within it, on the user's machine.
TRITON = re.compile(r"triton/backends/nvidia/driver\.(c|py)$")
TRITON_NAME = re.compile(r"\bcu(?!da|CUDA)[A-Z]\w+?(?=(?:_t|Handle)?\b)")
OUR_LIBRARY = re.compile(r"(^|/)(torch|torchvision|torchaudio|triton|deepspeed)/.*\.so(\.\d+)*$")


# The libraries whose functions the phantom takes over as a whole. NVRTC and nvJitLink need no card and stay NVIDIA's
# own; so do NVSHMEM and cuFile but for what torch calls, since only torch's own code uses them here.
WHOLE = {
    "cudart": r"libcudart\.so",
    "cublas": r"libcublas\.so",
    "cublaslt": r"libcublasLt\.so",
    "cudnn": r"libcudnn\.so",
    "nccl": r"libnccl\.so",
    "cusparselt": r"libcusparseLt\.so",
    "cusparse": r"libcusparse\.so",
    "cusolver": r"libcusolver(Mg)?\.so",
    "cufft": r"libcufft\.so",
    "curand": r"libcurand\.so",
    "cupti": r"libcupti\.so",
}


@dataclass
class Imports:
    """What one source imports: function names by family, and which torch it is."""

    torch: str = ""
    names: dict[str, set[str]] = field(default_factory=lambda: {name: set() for name in FAMILIES})

    def add(self, name: str) -> None:
        if match := FAMILY.match(name):
            self.names[str(match.lastgroup)].add(name)


def sections(elf: mmap.mmap) -> dict[str, tuple[int, int, int]]:
    """Name of each section of a 64-bit little-endian ELF file: (offset, size, size of an entry)."""
    if elf[:6] != b"\x7fELF\x02\x01":
        return {}
    start = struct.unpack_from("<Q", elf, 0x28)[0]
    size, count, names_at = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", elf, start + i * size) for i in range(count)]
    names = headers[names_at][4]
    found = {}
    for name, _, _, _, offset, length, _, _, _, entry in headers:
        text = elf[names + name : elf.find(b"\0", names + name)].decode()
        found[text] = (offset, length, entry)
    return found


def symbols(elf: mmap.mmap, *, defined: bool) -> Iterator[str]:
    """The names of the dynamic symbols that the file defines itself, or of those that it needs from others."""
    found = sections(elf)
    if ".dynsym" not in found or ".dynstr" not in found:
        return
    offset, size, entry = found[".dynsym"]
    strings = found[".dynstr"][0]
    for at in range(offset, offset + size, entry):
        name, _, _, section = struct.unpack_from("<IBBH", elf, at)
        if name and bool(section) == defined:
            yield elf[strings + name : elf.find(b"\0", strings + name)].decode()


def looked_up(elf: mmap.mmap) -> Iterator[str]:
    """The names of driver and NVML functions among the file's constant strings."""
    found = sections(elf)
    if ".rodata" in found:
        offset, size, _ = found[".rodata"]
        for match in LOOKED_UP.finditer(elf[offset : offset + size]):
            yield match.group().decode()


def read_library(path: Path, imports: Imports) -> None:
    with path.open("rb") as file:
        if path.stat().st_size == 0:
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as elf:
            for name in symbols(elf, defined=False):
                imports.add(name)
            if re.search(r"libc10_cuda|libtorch_cuda\.|libtorch_python", path.name):
                for name in looked_up(elf):
                    imports.add(name)


@contextmanager
def files_of(source: Path) -> Iterator[Iterator[tuple[str, Path]]]:
    """The files of a wheel or folder that may matter, as (name within it, path on this disk)."""
    if source.is_dir():
        packages = [source / name for name in ("torch", "torchvision", "torchaudio", "triton", "deepspeed")]
        paths = (path for package in packages for path in package.rglob("*") if path.is_file())
        yield ((path.relative_to(source).as_posix(), path) for path in paths)
        return
    with zipfile.ZipFile(source) as wheel, tempfile.TemporaryDirectory() as folder:

        def one_after_the_other() -> Iterator[tuple[str, Path]]:
            for name in wheel.namelist():
                if OUR_LIBRARY.search(name) or TRITON.search(name) or name == "torch/version.py":
                    path = Path(wheel.extract(name, folder))
                    yield name, path
                    path.unlink()

        yield one_after_the_other()


def read_source(source: Path) -> Imports:
    """What the packages in `source` import from NVIDIA's libraries."""
    imports = Imports()
    with files_of(source) as files:
        for name, path in files:
            if OUR_LIBRARY.search(name):
                read_library(path, imports)
            elif TRITON.search(name):
                for match in TRITON_NAME.finditer(path.read_text()):
                    imports.add(match.group())
            elif name == "torch/version.py":
                version = re.search(r"^__version__ = '(\d+\.\d+)", path.read_text(), re.MULTILINE)
                imports.torch = version.group(1) if version else ""
    return imports


def read_exports(folder: Path) -> dict[str, set[str]]:
    """What NVIDIA's libraries below a site-packages folder offer, by family."""
    names: dict[str, set[str]] = {}
    for path in sorted(folder.glob("nvidia/**/lib*.so*")):
        for family, pattern in WHOLE.items():
            if re.match(pattern, path.name) and path.stat().st_size:
                with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as elf:
                    offered = {name for name in symbols(elf, defined=True) if re.match(FAMILIES[family][0], name)}
                names.setdefault(family, set()).update(offered)
    return names


def read_list(path: Path) -> dict[str, set[str]]:
    """A list of symbols: which versions import each name."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {words[0]: set(words[1:]) for line in lines if (words := line.split("#")[0].split())}


def by_number(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def write_list(path: Path, library: str, versions: dict[str, set[str]]) -> None:
    width = max(map(len, versions))
    text = f"# Functions of {library}, and the versions of torch whose libraries import them.\n"
    text += "# Written by tools/phantom_symbols.py.\n"
    for name in sorted(versions):
        text += f"{name:{width}} {' '.join(sorted(versions[name], key=by_number))}".rstrip() + "\n"
    path.write_text(text)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sources", nargs="+", type=Path, metavar="SOURCE")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a name is missing")
    parser.add_argument("--exports", action="store_true", help="read what NVIDIA's libraries offer instead")
    parser.add_argument(
        "--torch", default="", metavar="VERSION", help="the torch that a wheel of another package is for"
    )
    parser.add_argument("--lists", type=Path, default=LISTS, metavar="FOLDER", help=argparse.SUPPRESS)
    options = parser.parse_args()

    if options.exports:
        for source in options.sources:
            for family, names in read_exports(source).items():
                path = options.lists / f"{family}.txt"
                write_list(path, FAMILIES[family][1], {**{name: set() for name in names}, **read_list(path)})
        return 0

    missing = []
    for source in options.sources:
        imports = read_source(source)
        version = options.torch or imports.torch
        if not version:
            parser.error(f"{source} holds no torch; name the version it goes with: --torch 2.14")
        if not any(imports.names.values()):
            parser.error(f"{source} imports nothing from NVIDIA's libraries: not a CUDA build?")
        for family, (_, library) in FAMILIES.items():
            path = options.lists / f"{family}.txt"
            versions = read_list(path)
            missing += [name for name in imports.names[family] if name not in versions]
            for name in imports.names[family]:
                versions.setdefault(name, set()).add(version)
            if versions and not options.check:
                write_list(path, library, versions)
        print(f"{source.name}: torch {version}, {sum(map(len, imports.names.values()))} functions")
    if options.check and missing:
        print("not in the lists: " + " ".join(sorted(missing)))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
