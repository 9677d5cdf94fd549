from __future__ import annotations

from typing import TYPE_CHECKING

from xlm_llamacpp.engine.cpu import cpu_options

if TYPE_CHECKING:
    from pathlib import Path


def options(tmp_path: Path, cpuinfo: str) -> tuple[str, ...]:
    file = tmp_path / "cpuinfo"
    file.write_text(cpuinfo)
    return cpu_options(file)


def test_an_instruction_set_is_on_only_where_the_cpu_has_all_of_it(tmp_path: Path) -> None:
    found = options(
        tmp_path, "processor\t: 0\nflags\t\t: sse4_2 avx avx2 avx512f avx512cd avx512vl avx512dq\n"
    )
    assert "-DGGML_AVX2=ON" in found
    assert "-DGGML_AVX512=OFF" in found
    assert "-DGGML_FMA=OFF" in found


def test_other_cpus_keep_the_compilers_default(tmp_path: Path) -> None:
    assert options(tmp_path, "processor\t: 0\nFeatures\t: fp asimd\n") == ()


def test_a_machine_without_cpuinfo_keeps_the_compilers_default(tmp_path: Path) -> None:
    assert cpu_options(tmp_path / "missing") == ()
