"""Rates by rules of thumb."""

from __future__ import annotations

from xlm_plugin.machine.rates import (
    CROSSING_SECONDS,
    EMULATED_CROSSING_SECONDS,
    HOST_BYTES_PER_S,
    HOST_FLOPS_PER_S_PER_THREAD,
    LINK_BYTES_PER_S,
    described_rates,
)
from xlm_plugin.testing import fake_device, fake_host


def test_a_described_link_goes_before_the_rule_of_thumb() -> None:
    assert described_rates(fake_host(), fake_device(link_bytes_per_s=7e9)).link_bytes_per_s == 7e9
    assert (
        described_rates(fake_host(), fake_device(link_bytes_per_s=None)).link_bytes_per_s == LINK_BYTES_PER_S
    )


def test_the_host_computes_with_the_threads_worth_using() -> None:
    rates = described_rates(fake_host(threads=8), fake_device())
    assert rates.host_flops_per_s == 8 * HOST_FLOPS_PER_S_PER_THREAD
    assert rates.crossing_seconds == CROSSING_SECONDS


def test_an_emulated_device_is_as_fast_as_the_host_and_a_crossing_is_a_cut_in_the_graph() -> None:
    rates = described_rates(fake_host(), fake_device(emulated=True))
    assert rates.device_bytes_per_s == HOST_BYTES_PER_S
    assert rates.device_flops_per_s == rates.host_flops_per_s
    assert rates.crossing_seconds == EMULATED_CROSSING_SECONDS < CROSSING_SECONDS
