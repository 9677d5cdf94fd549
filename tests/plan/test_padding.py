"""What weights take on a device."""

from __future__ import annotations

from xlm_plugin.model.graph import Shard, Tensor
from xlm_plugin.plan.padding import device_bytes


def shard(*tensors: Tensor) -> Shard:
    return Shard("blk.0.ffn", "ffn", 0, tensors, flops_per_token=0, active_bytes=0)


def test_each_movable_tensor_is_aligned_and_small_ones_are_not_counted() -> None:
    matrix = Tensor("a.weight", "F16", (50, 2), 200, movable=True)
    norm = Tensor("norm.weight", "F32", (50,), 200, movable=False)
    assert device_bytes(shard(matrix, norm)) == 256
    assert device_bytes(shard(matrix, norm, matrix)) == 512


def test_the_last_row_of_a_quantised_matrix_is_filled_up_to_512_elements() -> None:
    # 576 elements a row are 64 beyond 512: 448 more in Q8_0 (34 bytes for 32) are 476 bytes.
    matrix = Tensor("a.weight", "Q8_0", (576, 256), 576 * 256 * 34 // 32, movable=True)
    assert device_bytes(shard(matrix)) == -(-(matrix.bytes + 476) // 256) * 256


def test_whole_rows_need_no_filling() -> None:
    matrix = Tensor("a.weight", "Q4_K", (4096, 16), 4096 * 16 * 144 // 256, movable=True)
    assert device_bytes(shard(matrix)) == matrix.bytes
