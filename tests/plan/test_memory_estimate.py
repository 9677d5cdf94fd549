"""The estimate as the planner gets it."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest

from xlm_plugin.errors import ModelError
from xlm_plugin.model.cache import CacheRule
from xlm_plugin.model.graph import Shard, Tensor
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.driver import driver_bytes
from xlm_plugin.plan.memory import estimate
from xlm_plugin.plan.projector import Projector
from xlm_plugin.testing import fake_device, tiny_model
from xlm_plugin.units import MIB

if TYPE_CHECKING:
    from xlm_plugin.model.graph import ModelGraph

MODEL = tiny_model()
CONTEXT = PlannedContext(tokens=512)


def test_everything_on_the_device_is_the_fixed_part_and_what_a_plan_may_place() -> None:
    memory = estimate(MODEL, CONTEXT, device=fake_device())
    on_device = (
        "small_weight_bytes",
        "full_kv_bytes",
        "window_kv_bytes",
        "state_bytes",
        "draft_compute_bytes",
        "projector_bytes",
        "driver_bytes",
    )
    assert set(on_device) < {field.name for field in fields(memory)}
    assert memory.fixed_bytes == sum(getattr(memory, name) for name in on_device) + memory.compute.total_bytes
    assert memory.device_bytes == memory.fixed_bytes + memory.movable_bytes


def test_small_weights_are_padded_as_a_device_does() -> None:
    norms = [tensor for shard in MODEL.shards for tensor in shard.tensors if not tensor.movable]
    on_device = [tensor for tensor in norms if tensor.name != "token_embd.weight"]
    memory = estimate(MODEL, CONTEXT)
    assert memory.small_weight_bytes == sum(max(256, tensor.bytes) for tensor in on_device)


def test_a_driver_is_counted_for_a_real_device_only() -> None:
    memory = estimate(MODEL, CONTEXT, device=fake_device())
    assert memory.driver_bytes == driver_bytes(fake_device(), memory.compute.activation_bytes)
    assert estimate(MODEL, CONTEXT, device=fake_device(emulated=True)).driver_bytes == 0
    assert estimate(MODEL, CONTEXT).driver_bytes == 0


def test_c26_a_device_without_virtual_memory_takes_more() -> None:
    leg = estimate(MODEL, CONTEXT, device=fake_device(), virtual_memory=False)
    assert leg.driver_bytes > estimate(MODEL, CONTEXT, device=fake_device()).driver_bytes


def test_shards_on_the_cpu_take_larger_compute_buffers() -> None:
    crossing, resident = (estimate(MODEL, CONTEXT, crossing=crossing) for crossing in (True, False))
    assert crossing.compute_bytes > resident.compute_bytes
    assert crossing.host_compute_bytes > resident.host_compute_bytes


def test_c19_a_projector_is_counted_with_its_weights_and_its_largest_image() -> None:
    tower = Projector(weight_bytes=885 * MIB, width=1280, ffn_width=3420, head_count=16)
    memory = estimate(MODEL, CONTEXT, projector=tower, image_tokens=1048)
    assert memory.projector_bytes == tower.weight_bytes + tower.encode_bytes(1048)


def test_vision_shards_are_no_weights_that_a_plan_may_place() -> None:
    matrix = Tensor("v.blk.0.attn.weight", "F16", (64, 64), 8192, movable=True)
    vision = Shard("vision.0.attn", "vision", 0, (matrix,), 0, 8192)
    seeing = replace(MODEL, shards=(*MODEL.shards, vision))
    memory = estimate(seeing, CONTEXT)
    assert memory.projector_bytes == 8192
    assert memory.movable_bytes == estimate(MODEL, CONTEXT).movable_bytes


def test_a_model_without_attention_takes_no_cache() -> None:

    recurrent = replace(MODEL, cache=CacheRule((), state_conv_bytes=100, state_ssm_bytes=1000))
    memory = estimate(recurrent, PlannedContext(tokens=512, sequences=3))
    assert memory.kv_bytes == 0
    assert memory.state_bytes == 3300


@pytest.mark.parametrize(
    ("model", "field", "fault"),
    [
        (tiny_model(), "head_count", "attention, but no heads"),
        (tiny_model(experts=4), "experts", "routed experts, but their number is 0"),
    ],
)
def test_a_model_that_contradicts_itself_is_refused(model: ModelGraph, field: str, fault: str) -> None:
    broken = replace(model, shape=replace(model.shape, **{field: 0}))
    with pytest.raises(ModelError, match=f"contradicts itself: it has {fault}"):
        estimate(broken, CONTEXT)


def test_a_layers_kv_in_host_memory_leaves_the_device_but_for_one_copy() -> None:
    context = PlannedContext(tokens=512, ubatch_tokens=64)
    all_on_device = estimate(MODEL, context)
    layer_bytes = all_on_device.kv_bytes // 2
    split = estimate(MODEL, context, host_kv_layers=(1,))
    assert split.kv_bytes == layer_bytes
    assert split.compute_bytes == all_on_device.compute_bytes + layer_bytes
    never_copied = estimate(MODEL, context, host_kv_layers=(1,), host_kv_device_tokens=65)
    assert never_copied.compute_bytes == all_on_device.compute_bytes


def test_a_host_layer_takes_its_weights_and_cache_along() -> None:
    context = PlannedContext(tokens=512)
    all_on_device, split = estimate(MODEL, context), estimate(MODEL, context, host_layers=1)
    assert split.kv_bytes == all_on_device.kv_bytes // 2
    assert split.small_weight_bytes < all_on_device.small_weight_bytes
    moved_bytes = split.host_weight_bytes - all_on_device.host_weight_bytes
    assert moved_bytes == sum(shard.bytes for shard in MODEL.shards if shard.layer == 0)
