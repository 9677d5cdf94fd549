"""What drivers take, and what vision towers take."""

from __future__ import annotations

import pytest

from xlm_plugin.plan.driver import CONTEXT_BYTES, driver_bytes
from xlm_plugin.plan.projector import Projector
from xlm_plugin.plan.target import MARGIN_BYTES
from xlm_plugin.testing import fake_device
from xlm_plugin.units import GIB, MIB

# Qwen2.5-VL's tower, whose patches are 14 pixels wide (evidence 1.1; ffn and heads from its configuration).
TOWER = Projector(weight_bytes=1291 * MIB, width=1280, ffn_width=3420, head_count=16)


def image_tokens(width: int, height: int) -> int:
    return (width // 28) * (height // 28)


def test_an_emulated_device_has_no_driver() -> None:
    assert driver_bytes(fake_device(emulated=True), 100 * MIB, virtual_memory=False) == 0


def test_a_real_device_has_a_context_and_a_pool() -> None:
    assert driver_bytes(fake_device()) == CONTEXT_BYTES
    assert driver_bytes(fake_device(), 100 * MIB) == CONTEXT_BYTES + 50 * MIB


def test_c26_the_reserve_depends_on_virtual_memory() -> None:
    with_vmm = driver_bytes(fake_device(), 100 * MIB)
    without = driver_bytes(fake_device(), 100 * MIB, virtual_memory=False)
    # A pool that cannot grow in place keeps what was outgrown beside its 5 % larger successor.
    assert without - CONTEXT_BYTES == pytest.approx(2.05 * (with_vmm - CONTEXT_BYTES))


def test_c18_the_projector_raises_what_must_stay_free() -> None:
    # Qwen2.5-Omni-3B: 1024 MiB become 3471.
    omni = Projector(weight_bytes=int(2447.80 * MIB))
    assert (omni.weight_bytes + omni.encode_bytes(0) + MARGIN_BYTES) // MIB == 3471


def test_c19_encoding_grows_with_the_image_and_faster_without_flash_attention() -> None:
    small, large = (TOWER.encode_bytes(tokens, flash_attention=False) for tokens in (256, 1024))
    assert large > 8 * small
    assert TOWER.encode_bytes(1024) == 4 * TOWER.encode_bytes(256)


@pytest.mark.parametrize(
    ("size", "least", "most"),
    [
        pytest.param((854, 480), 0, 2 * GIB, id="C19 480p fits in 4G"),
        pytest.param((1280, 720), 0, 6 * GIB, id="C19 720p fits in 8G"),
        pytest.param((1920, 1080), 4 * GIB, 12 * GIB, id="C19 1080p fits in 14G"),
        pytest.param((2560, 1440), 14 * GIB, 40 * GIB, id="C19 1440p does not fit in 14G"),
    ],
)
def test_encoding_by_resolution(size: tuple[int, int], least: int, most: int) -> None:
    """Table 8 of arXiv 2604.26334 has totals only; these bounds leave room for a language model of 2 GiB."""
    assert least <= TOWER.encode_bytes(image_tokens(*size), flash_attention=False) <= most
