"""The lists of NVIDIA's functions, and what becomes of those that nobody implements."""

import json
import mmap
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from phantom_child import calls_on_phantom, run_on_phantom
from torch_build import require_cuda_torch

from movie.phantom.library import library_path

_ROOT = Path(__file__).parents[2]
_LISTS = _ROOT / "native/phantom/symbols"
_NOT_IMPLEMENTED = 97

sys.path.insert(0, str(_ROOT / "tools"))

import phantom_stops  # noqa: E402
import phantom_symbols  # noqa: E402


def _names() -> set[str]:
    return phantom_stops.read_names([path for path in _LISTS.glob("*.txt") if path.name != phantom_stops.HARMLESS])


def test_every_listed_function_is_there_and_without_a_version() -> None:
    code = """
        import json, sys
        print(json.dumps([name for name in sys.argv[1:] if not hasattr(cuda, name)]))
    """
    missing: list[str] = []
    names = sorted(_names())
    assert len(names) > 3000
    for start in range(0, len(names), 1000):
        missing += json.loads(calls_on_phantom(code, arguments=tuple(names[start : start + 1000])))
    assert missing == []


def test_the_library_shows_nothing_but_functions_of_cuda_and_its_own() -> None:
    """Anything else would come before what other libraries of the process define under the same name."""
    with library_path().open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as elf:
        shown = set(phantom_symbols.symbols(elf, defined=True))
    assert len(shown) > 3000
    strange = [name for name in shown if not phantom_symbols.FAMILY.match(name)]
    assert [name for name in strange if not name.startswith("movie_phantom_")] == []


@pytest.mark.parametrize("function", ["cufftCreate", "cusolverDnCreate", "cusparseCreate", "curandCreateGenerator"])
def test_a_function_that_nobody_implements_says_its_name_and_stops_the_run(function: str) -> None:
    result = run_on_phantom(f"import ctypes; ctypes.CDLL(None).{function}(0); print('went on')")
    assert result.returncode == _NOT_IMPLEMENTED
    assert f"phantom: {function} is not implemented" in result.stderr
    assert "report" in result.stderr
    assert "went on" not in result.stdout


def test_what_python_has_printed_before_the_stop_is_the_callers_affair_but_c_output_is_not_lost() -> None:
    result = run_on_phantom("import ctypes; c = ctypes.CDLL(None); c.printf(b'before'); c.cufftCreate(0)")
    assert result.returncode == _NOT_IMPLEMENTED
    assert result.stdout == "before"


def test_harmless_functions_return_what_their_list_says() -> None:
    harmless = phantom_stops.read_harmless(_LISTS / phantom_stops.HARMLESS)
    code = "import sys; print(*[getattr(cuda, name)() for name in sys.argv[1:]])"
    values = calls_on_phantom(code, arguments=tuple(harmless)).split()
    assert [int(value) for value in values] == [value for value, _ in harmless.values()]
    assert all(phantom_symbols.FAMILY.match(name) for name in harmless)


@pytest.mark.parametrize(
    ("text", "problem"),
    [("cuptiFinalize = 0:\n", "harmless.txt:1"), ("a = 0: x\n# b\na = 0: y\n", "harmless.txt:3: a stands here twice")],
)
def test_a_harmless_function_needs_a_reason_and_stands_once(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / phantom_stops.HARMLESS
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(problem)):
        phantom_stops.read_harmless(path)


def test_a_harmless_function_gets_no_stop(tmp_path: Path) -> None:
    (tmp_path / "cupti.txt").write_text("# head\none 2.6 2.14\ntwo\n")
    (tmp_path / "harmless.txt").write_text("two = 35: a reason\n")
    text = phantom_stops.generate(sorted(tmp_path.glob("*.txt")))
    assert "WEAK one()" in text
    assert "WEAK two()" not in text
    assert "FIXED two() { return 35; }" in text


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that needs two functions, offers one, and names one of the driver that it looks up."""
    compiler = shutil.which("c++")
    assert compiler, "the tests need the compiler that built the project"
    folder = tmp_path_factory.mktemp("torch") / "torch" / "lib"
    folder.mkdir(parents=True)
    (folder / "needs.cpp").write_text(
        'extern "C" int cudaMalloc(void**, long); extern "C" int cublasLtMatmul();\n'
        'extern "C" int cudnnOwn() { return cudaMalloc(nullptr, 1) + cublasLtMatmul(); }\n'
        'extern "C" const char* const names[] = {"cuMemMap", "cuda", "not a name cuMemUnmap"};\n'
    )
    path = folder / "libc10_cuda.so"
    subprocess.run([compiler, "-shared", "-fPIC", str(folder / "needs.cpp"), "-o", str(path)], check=True)
    (folder.parent / "version.py").write_text("__version__ = '2.99.1+cu130'\n")
    return path


def test_imports_are_read_from_the_library_itself(library: Path) -> None:
    imports = phantom_symbols.read_source(library.parents[2])
    found = {family: names for family, names in imports.names.items() if names}
    assert imports.torch == "2.99"
    assert found == {"cudart": {"cudaMalloc"}, "cublaslt": {"cublasLtMatmul"}, "cuda": {"cuMemMap"}}


def test_lists_gain_versions_and_lose_nothing(library: Path, tmp_path: Path) -> None:
    (tmp_path / "cudart.txt").write_text("cudaFree 2.6\ncudaMalloc 2.6\n")
    command = [sys.executable, str(_ROOT / "tools/phantom_symbols.py"), "--lists", str(tmp_path)]
    checked = subprocess.run(
        [*command, "--check", str(library.parents[2])], capture_output=True, text=True, check=False
    )
    assert checked.returncode == 1
    assert "cuMemMap cublasLtMatmul" in checked.stdout
    subprocess.run([*command, str(library.parents[2])], check=True, capture_output=True)
    assert phantom_symbols.read_list(tmp_path / "cudart.txt") == {"cudaFree": {"2.6"}, "cudaMalloc": {"2.6", "2.99"}}
    subprocess.run([*command, "--check", str(library.parents[2])], check=True, capture_output=True)


def test_the_lists_have_all_that_the_installed_torch_imports() -> None:
    require_cuda_torch()
    import torch  # noqa: PLC0415

    site = Path(torch.__file__).parents[1]
    command = [sys.executable, str(_ROOT / "tools/phantom_symbols.py"), "--check", str(site)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
