"""The page of a plan: whole, well-formed and self-contained."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest

from xlm_hooks import plugin as built_in
from xlm_plugin.cli._plan_page import plan_page
from xlm_plugin.machine.profile import Profile
from xlm_plugin.plan.curve import budget_curve
from xlm_plugin.plan.document import PlannedContext
from xlm_plugin.plan.explain import explain
from xlm_plugin.plan.make import make_plan
from xlm_plugin.plan.memory import estimate
from xlm_plugin.plan.simulated import SimulatedPlan
from xlm_plugin.testing import fake_machine, plugin_manager, tiny_model

VOID = {"meta", "br", "link", "img"}
MODEL = tiny_model(layers=4, embedding_width=512, ffn_width=2048, vocabulary=4096)
PROFILE = Profile(fake_machine())
CONTEXT = PlannedContext(tokens=512)


class Nesting(HTMLParser):
    """Asserts that every element is closed where it should be."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:  # noqa: ARG002
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: Any) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page() -> str:
    memory = estimate(MODEL, CONTEXT, device=PROFILE.machine.device)
    with plugin_manager(built_in) as manager:

        def plan(budget_bytes: int) -> Any:
            return make_plan(manager, MODEL, PROFILE, CONTEXT, budget_bytes)

        half = plan(memory.fixed_bytes + memory.movable_bytes // 2)
        explanation = explain(half, MODEL, PROFILE, plan)
        curve = budget_curve(plan, MODEL, PROFILE, CONTEXT)
    return plan_page(SimulatedPlan(half, MODEL, PROFILE), explanation, curve)


def test_every_element_is_closed(page: str) -> None:
    parser = Nesting()
    parser.feed(page)
    parser.close()
    assert parser.open == []


def test_nothing_is_fetched_from_elsewhere(page: str) -> None:
    assert not re.search(r"https?://|src=|<link|<script|@import|url\(", page)


def test_drawings_are_well_formed_and_stay_inside_their_frame(page: str) -> None:
    drawings = [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", page, re.DOTALL)]
    assert len(drawings) >= 6
    for svg in drawings:
        assert svg.get("aria-label")
        _, _, width, height = map(float, str(svg.get("viewBox")).split())
        for rect in svg.iter("rect"):
            x, y, wide, high = (float(str(rect.get(key))) for key in ("x", "y", "width", "height"))
            assert x >= 0
            assert x + wide <= width + 0.5
            assert y + high <= height + 0.5


def test_every_shard_is_on_the_map_of_every_tier(page: str) -> None:
    maps = re.findall(r'<svg[^>]*aria-label="Placement.*?</svg>', page, re.DOTALL)
    names = [shard.name for shard in MODEL.shards if shard.home == "device"]
    assert maps
    assert all(drawn.count(f">{name}, ") + drawn.count(f"{name}, ") >= 1 for drawn in maps for name in names)


def test_there_are_colours_for_light_and_for_dark(page: str) -> None:
    light, dark = page.split("@media (prefers-color-scheme: dark)")
    for name in re.findall(r"var\((--[a-z]+)\)", page):
        assert f"{name}:" in light
        assert f"{name}:" in dark.split("}\n}")[0]
