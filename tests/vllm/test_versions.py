from __future__ import annotations

import pytest

from xlm_plugin.errors import EngineError
from xlm_vllm.versions import check_version


@pytest.mark.parametrize("found", ["0.27.1", "0.32.0", "0.32.0+cpu.shim", "0.33.2", "0.33.0rc1"])
def test_known_versions_of_vllm_are_taken(found: str) -> None:
    check_version(found)


@pytest.mark.parametrize("found", ["0.8.5", "0.27.0", "0.34.0", "1.0.0", "dev"])
def test_others_are_refused_with_the_range(found: str) -> None:
    with pytest.raises(EngineError, match=r"Install one from 0\.27\.1 to 0\.33"):
        check_version(found)
