"""Notebooks: their outputs are made by running them, and they are pages of the site.

python docs/making/notebooks.py           run both notebooks, and tell where an output differs
python docs/making/notebooks.py --write   run both and keep the outputs
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from html import escape
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DOCS = HERE.parent
NOTEBOOKS = ("data-holder", "analyst")
REPEATABLE = """\
import sys

sys.path.append({folder!r})
from repeatable import repeatable

_kept = repeatable([{name!r}])
_kept.__enter__()
"""
"""Runs before the first cell: attacks and releases draw random numbers."""
RICHEST = ("image/svg+xml", "text/html", "text/plain")
"""Of several forms of an output, the first of these is shown."""


def path_of(name: str) -> Path:
    return DOCS / "notebooks" / f"{name}.ipynb"


def executed(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of today, and nothing that differs from one machine to the next."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(REPEATABLE.format(folder=str(HERE), name=path.stem)))
    client = NotebookClient(
        notebook, timeout=300, startup_timeout=300, resources={"metadata": {"path": str(path.parent)}}
    )
    paths = [str(DOCS.parent / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    settings = {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as profile:  # not the user's own, with whatever is set and loaded there
        client.execute(env={**os.environ, **settings, "IPYTHONDIR": profile})
    made: dict[str, Any] = json.loads(nbformat.writes(notebook))
    del made["cells"][0]
    made["metadata"] = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    for number, cell in enumerate(made["cells"], start=1):
        cell["metadata"], cell["id"] = {}, f"cell-{number}"
        if "outputs" in cell:
            cell["outputs"] = _joined(cell["outputs"])
        for counted in (cell, *cell.get("outputs", ())):
            counted |= {"execution_count": counted["execution_count"] - 1} if "execution_count" in counted else {}
    return made


def _joined(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The outputs of a cell; what it prints comes in as many pieces as the machine likes."""
    found: list[dict[str, Any]] = []
    for output in outputs:
        last = found[-1] if found else {}
        if output["output_type"] == last.get("output_type") == "stream" and output["name"] == last["name"]:
            text = "".join(last["text"]) + "".join(output["text"])
            found[-1] = {**last, "text": text.splitlines(keepends=True)}
        else:
            found.append(output)
    return found


def written(notebook: dict[str, Any]) -> str:
    return json.dumps(notebook, ensure_ascii=False, indent=1) + "\n"


def shown(output: dict[str, Any]) -> tuple[str, str]:
    """The form of an output that is shown, and its text."""
    if output["output_type"] == "stream":
        return "text/plain", "".join(output["text"])
    data = output["data"]
    kind = next(kind for kind in RICHEST if kind in data)
    return kind, "".join(data[kind])


def texts(notebook: dict[str, Any]) -> list[str]:
    """What the cells print, without markup: what two runs are compared by."""
    outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
    return [re.sub(r"<style.*?</style>|<[^>]+>", " ", shown(output)[1], flags=re.S) for output in outputs]


def page_of(path: Path) -> str:
    """The notebook as a page of Markdown, with its outputs."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return "\n\n".join(part for cell in cells for part in _parts(cell)) + "\n"


def _parts(cell: dict[str, Any]) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [source]
    return [f"```python\n{source}\n```", *(_drawn(*shown(output)) for output in cell["outputs"])]


def _drawn(kind: str, text: str) -> str:
    """An output as one line of HTML, which Markdown leaves as it is."""
    inside = f"<pre>{escape(text.rstrip())}</pre>" if kind == "text/plain" else text
    return '<div class="output">' + inside.replace("\n", "&#10;" if kind == "text/plain" else " ") + "</div>"


def differences(name: str) -> list[str]:
    """Where a notebook, run today, says something else than it has stored."""
    from transcripts import alike

    stored = texts(json.loads(path_of(name).read_text(encoding="utf-8")))
    came = texts(executed(path_of(name)))
    if len(stored) != len(came):
        return [f"docs/notebooks/{name}.ipynb: {len(came)} outputs, where {len(stored)} are stored"]
    pairs = zip(stored, came, strict=True)
    return [f"docs/notebooks/{name}.ipynb: stored\n{old}\ncame\n{new}" for old, new in pairs if not alike(old, new)]


def main() -> int:
    failed = 0
    for name in NOTEBOOKS:
        if "--write" in sys.argv:
            path_of(name).write_text(written(executed(path_of(name))), encoding="utf-8")
            continue
        problems = differences(name)
        failed += len(problems)
        print("\n\n".join(problems) or f"docs/notebooks/{name}.ipynb: every cell says what is stored")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
