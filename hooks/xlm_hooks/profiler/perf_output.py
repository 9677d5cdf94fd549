"""Rows from what ``test-backend-ops perf`` prints on a terminal (llama.cpp b10488).

Backend 1/2: CUDA0
MUL_MAT(type_a=q4_0,type_b=f32,m=4096,n=1,k=14336,bs=[1,1],...):   852 runs -  1180.29 us/run - ...
"""

from __future__ import annotations

import datetime
import re
from typing import TYPE_CHECKING

from xlm_plugin.errors import ProfileError
from xlm_plugin.machine.profile import Measurement, MeasurementRequest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from xlm_plugin.machine.profile import Side

_BACKEND = re.compile(r"\s*Backend \d+/\d+: (\S+)")
_ROW = re.compile(r"\s*(\w+)\((.*)\):\s+\d+ runs -\s+([\d.]+) us/run")
_PARAMETER = re.compile(r"(\w+)=(\[[^\]]*\]|[^,]*)")
_LEAST_MICROSECONDS, _MOST_MICROSECONDS = 1e-3, 1e9


def is_perf_output(text: str) -> bool:
    """Tell whether ``text`` is such output."""
    return any(_ROW.match(line) for line in text.splitlines())


def read_perf_output(text: str, threads: int) -> Iterator[Measurement]:
    """Yield the rows of ops that plans use, under today's date.

    The first line of each backend says on what it ran. Raises ProfileError for absurd times.
    """
    on: Side = "device"
    for line in _plain(text).splitlines():
        if backend := _BACKEND.match(line):
            on = "host" if backend[1].startswith("CPU") else "device"
        elif row := _ROW.match(line):
            microseconds = float(row[3])
            if not _LEAST_MICROSECONDS <= microseconds <= _MOST_MICROSECONDS:
                raise ProfileError(f"{row[1]} is said to take {row[3]} us.")
            request = _request(row[1], dict(_PARAMETER.findall(row[2])), threads, on)
            if request:
                seconds = microseconds * 1e-6
                yield Measurement(request, seconds, 0.0, "test-backend-ops", datetime.date.today())


def _request(op: str, values: Mapping[str, str], threads: int, on: Side) -> MeasurementRequest | None:
    def number(name: str) -> int:
        return int(values[name])

    try:
        if op == "MUL_MAT" and values.get("bs", "[1,1]") == "[1,1]":
            shape: tuple[int, ...] = (number("k"), number("m"))
            return MeasurementRequest(op, values["type_a"].upper(), shape, number("n"), threads, on)
        if op == "MUL_MAT_ID":
            shape = (number("k"), number("m"), number("n_mats"), number("n_used"))
            return MeasurementRequest(op, values["type_a"].upper(), shape, number("n"), threads, on)
        if op == "FLASH_ATTN_EXT" and values["hsk"] == values["hsv"]:
            groups = int(values["nr23"].strip("[]").split(",")[0])
            shape = (number("hsk"), number("nh") * groups, number("nh"), number("kv"))
            kind = values.get("type_K", values.get("type_KV", "")).upper()
            return MeasurementRequest(op, kind, shape, number("nb"), threads, on) if kind else None
    except (KeyError, ValueError):
        return None
    return None


def _plain(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", text)
