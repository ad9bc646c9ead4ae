"""Notebooks as pages."""
import json
from pathlib import Path
def page_of(path: Path) -> str:
    return "# x\n"
