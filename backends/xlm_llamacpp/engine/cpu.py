"""The instruction sets of this CPU as ggml's build options."""

from __future__ import annotations

from pathlib import Path

# What each option makes the compiler use, in the kernel's names (ggml/src/ggml-cpu/CMakeLists.txt).
_NEEDS = {
    "GGML_SSE42": {"sse4_2"},
    "GGML_AVX": {"avx"},
    "GGML_F16C": {"f16c"},
    "GGML_FMA": {"fma"},
    "GGML_BMI2": {"bmi2"},
    "GGML_AVX2": {"avx2"},
    "GGML_AVX_VNNI": {"avx_vnni"},
    "GGML_AVX512": {"avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"},
    "GGML_AVX512_VBMI": {"avx512vbmi"},
    "GGML_AVX512_VNNI": {"avx512_vnni"},
    "GGML_AVX512_BF16": {"avx512_bf16"},
}


def cpu_options(cpuinfo: Path = Path("/proc/cpuinfo")) -> tuple[str, ...]:
    """Return CMake options for the x86 CPU that ``cpuinfo`` describes; nothing for other CPUs.

    They are spelled out because ``GGML_NATIVE`` cannot be combined with loadable backends.
    """
    flags = _flags(cpuinfo)
    if not flags:
        return ()
    return tuple(f"-D{option}={'ON' if needs <= flags else 'OFF'}" for option, needs in _NEEDS.items())


def _flags(cpuinfo: Path) -> set[str]:
    try:
        with cpuinfo.open(encoding="utf-8") as lines:
            line = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return set()
    return set(line.partition(":")[2].split())
