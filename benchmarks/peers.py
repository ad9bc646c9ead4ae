"""Other programs in environments of their own, so that they cannot get in our way, nor we in theirs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "bench-out" / "peers"


def peer_python(package: str, *also: str) -> Path | None:
    """An interpreter with `package`, and what it forgets to ask for; made once and kept. None when it cannot be had."""
    folder = FOLDER / package
    python = folder / "bin" / "python"
    if (folder / "ready").exists():
        return python
    try:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True, capture_output=True, timeout=300)
        install = [python, "-m", "pip", "install", "-q", package, *also]
        subprocess.run(install, check=True, capture_output=True, timeout=900)
    except (subprocess.SubprocessError, OSError) as error:
        print(f"{package} could not be installed, comparison left out ({type(error).__name__})")
        return None
    (folder / "ready").touch()
    return python
