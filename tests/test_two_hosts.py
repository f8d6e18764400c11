"""Two hosts made of network namespaces: `benchmarks/two_hosts.sh` trains over a rendezvous and compares with one process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import spam_gnn

SCRIPT = Path(__file__).parent.parent / "benchmarks" / "two_hosts.sh"


def _why_not() -> str:
    """What is missing here; nothing where a namespace can be made and removed."""
    if shutil.which("ip") is None or shutil.which("bash") is None:
        return "needs the commands ip and bash"
    name = f"spam-{uuid.uuid4().hex[:8]}"
    made = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True, check=False)
    if made.returncode:
        return f"network namespaces cannot be made here ({made.stderr.strip()}); needs root"
    subprocess.run(["ip", "netns", "del", name], check=True)
    return ""


def test_two_hosts_train_as_one_process_does():
    reason = _why_not()
    if reason:
        pytest.skip(reason)
    source = str(Path(spam_gnn.__file__).parent.parent)
    environment = {**os.environ, "PYTHON": sys.executable, "PYTHONPATH": source}
    done = subprocess.run(["bash", str(SCRIPT)], capture_output=True, text=True, timeout=300, env=environment, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "two hosts trained together" in done.stdout
