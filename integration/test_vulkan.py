"""Equal tokens on a real foreign device: Vulkan, on Mesa's lavapipe where there is no GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from integration.conftest import Runner
from integration.plans import SHAPES, plan_by
from xlm_llamacpp.backend import LlamaCppBackend
from xlm_llamacpp.devices import list_devices
from xlm_llamacpp.engine import find_engine

if TYPE_CHECKING:
    from collections.abc import Iterator

    from xlm_plugin.model.graph import ModelGraph
    from xlm_plugin.plan.document import PlannedContext


@pytest.fixture(scope="module")
def vulkan() -> Iterator[Runner]:
    engine = find_engine(variant="vulkan")
    if engine is None:
        pytest.skip("no Vulkan engine is built (xlm engine build --accelerator vulkan)")
    with pytest.MonkeyPatch.context() as environment:
        if not list_devices(engine.server):
            # The engine hides devices of type CPU, such as lavapipe, unless they are asked for.
            environment.setenv("GGML_VK_VISIBLE_DEVICES", "0")
        devices = list_devices(engine.server)
        if not devices:
            pytest.skip("the Vulkan engine finds no device, not even lavapipe (mesa-vulkan-drivers)")
        yield Runner(LlamaCppBackend(engine), devices[0], "The river rose in the night and by morning", 4)


# Without plans that change CPU placement between steps, which the stock engine cannot have, and CPU kernels
# round in another way. Nor with experts on the CPU: on lavapipe the stock engine itself then differs from run
# to run (b10488, Mesa 22.3). The dense model is slow there, so it gets two plans.
CASES = (
    ("moe", "all pin"),
    ("moe", "all stream"),
    ("moe", "mixed"),
    ("moe", "pinned and streamed by turns"),
    ("demo", "all stream"),
    ("demo", "mixed"),
)


@pytest.mark.parametrize(("name", "shape"), CASES)
def test_tokens_and_logprobs_are_those_of_the_bare_vulkan_device(
    vulkan: Runner,
    context: PlannedContext,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    shape: str,
) -> None:
    model: ModelGraph = request.getfixturevalue(name)
    plan = plan_by(model, vulkan.device, context, *SHAPES[shape])
    if model.shape.experts and "llvmpipe" in vulkan.device.description:
        # The stock engine crashes in lavapipe's fused choice among fewer than 64 experts.
        monkeypatch.setenv("GGML_VK_DISABLE_FUSION", "1")
    completion, stats = vulkan.under(plan, model)
    expected = vulkan.stock(plan, model)
    assert completion.tokens == expected.tokens
    assert completion.logprobs == expected.logprobs
    assert sum(stats.ledger_bytes.values()) <= stats.budget_bytes
