"""Structs that programs pass to the phantom, held against the CUDA toolkit's own headers where they are installed."""

import os
import re
import subprocess
import sys
from pathlib import Path

from missing import missing

NATIVE = Path(__file__).parents[2] / "native"

# Our name of a field, and the toolkit's.
FIELDS = {
    "name": "name", "uuid": "uuid", "total_global_mem": "totalGlobalMem", "shared_mem_per_block": "sharedMemPerBlock",
    "max_grid_size": "maxGridSize", "total_const_mem": "totalConstMem", "major": "major", "minor": "minor",
    "multiprocessor_count": "multiProcessorCount", "textures": "maxTexture1D", "surface_alignment": "surfaceAlignment",
    "pci_bus_id": "pciBusID", "memory_bus_width": "memoryBusWidth", "l2_cache_size": "l2CacheSize",
    "max_threads_per_multiprocessor": "maxThreadsPerMultiProcessor",
    "shared_mem_per_multiprocessor": "sharedMemPerMultiprocessor", "regs_per_multiprocessor": "regsPerMultiprocessor",
    "cooperative_launch": "cooperativeLaunch", "shared_mem_per_block_optin": "sharedMemPerBlockOptin",
    "reserved_shared_mem_per_block": "reservedSharedMemPerBlock", "memory_pools_supported": "memoryPoolsSupported",
    "cluster_launch": "clusterLaunch", "reserved": "reserved",
}  # fmt: skip

OTHERS = """
namespace abi = movie::phantom::runtime;
#define SAME(ours, ours_field, theirs, theirs_field) \\
    static_assert(offsetof(abi::ours, ours_field) == offsetof(theirs, theirs_field), #theirs "." #theirs_field)
SAME(PointerAttributes, device, cudaPointerAttributes, device);
SAME(PointerAttributes, device_pointer, cudaPointerAttributes, devicePointer);
SAME(PointerAttributes, host_pointer, cudaPointerAttributes, hostPointer);
SAME(FuncAttributes, num_regs, cudaFuncAttributes, numRegs);
SAME(FuncAttributes, max_dynamic_shared_size_bytes, cudaFuncAttributes, maxDynamicSharedSizeBytes);
static_assert(sizeof(abi::FuncAttributes) == sizeof(cudaFuncAttributes));
SAME(LaunchConfig, dynamic_shared, cudaLaunchConfig_t, dynamicSmemBytes);
SAME(LaunchConfig, stream, cudaLaunchConfig_t, stream);
static_assert(sizeof(abi::Dim3) == sizeof(dim3));
static_assert(sizeof(cudaIpcMemHandle_t) == 64 && sizeof(cudaIpcEventHandle_t) == 64);
static_assert(offsetof(cudaGraphNodeParams, conditional) == 16);
static_assert(offsetof(cudaConditionalNodeParams, phGraph_out) == 16);
static_assert(offsetof(CUmemAllocationProp, location) == 8 && sizeof(CUmemAllocationProp) == 32);
static_assert(sizeof(CUmemAccessDesc) == 12 && offsetof(CUmemAccessDesc, flags) == 8);
static_assert(offsetof(CUlaunchConfig, hStream) == 32);
int main() {}
"""


def _headers() -> list[Path]:
    places = [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "include"]
    for root in sys.path:
        places += [Path(root) / "nvidia" / name / "include" for name in ("cu13", "cuda_runtime")]
    needed = ("cuda_runtime_api.h", "cuda.h", "crt/host_defines.h")  # some wheels leave the last one out
    return [place for place in places if all((place / name).is_file() for name in needed)]


def test_layouts_are_those_of_the_toolkit(tmp_path: Path) -> None:
    headers = _headers()
    if not headers:
        missing("no CUDA headers on this machine (they come with a CUDA build of torch, or with the toolkit)")
    for at, include in enumerate(headers):
        text = (include / "cuda_runtime_api.h").read_text()
        major = int(re.search(r"#define CUDART_VERSION\s+(\d+)", text)[1]) // 1000  # type: ignore[index]
        ours = f"Properties{major}"
        # The structs are private to their file: it is read as a whole.
        files = ("<cstddef>", "<cuda.h>", "<cuda_runtime_api.h>", f'"{NATIVE}/phantom/runtime/device_prop.cpp"')
        source = "".join(f"#include {name}\n" for name in (*files, '"phantom/runtime/abi.h"'))
        source += "using namespace movie::phantom::runtime;\n"
        source += f"static_assert(sizeof({ours}) == sizeof(cudaDeviceProp));\n"
        for mine, theirs in FIELDS.items():
            source += f'static_assert(offsetof({ours}, {mine}) == offsetof(cudaDeviceProp, {theirs}), "{theirs}");\n'
        path = tmp_path / f"layouts{at}.cpp"
        path.write_text(source + OTHERS)
        command = [
            os.environ.get("CXX", "c++"),
            "-std=c++20",
            "-fsyntax-only",
            f"-I{NATIVE}",
            f"-I{include}",
            str(path),
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        assert result.returncode == 0, f"{include}: {result.stderr[:3000]}"
