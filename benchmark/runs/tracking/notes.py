"""What the UI says in words: descriptions of studies and runs, and the reports they link to.

No folder of this machine is named: reports and runs are where they are below the folder of the
results.
"""

from collections.abc import Sequence
from pathlib import Path

from benchmark.core.files import copy_file
from benchmark.runs.tracking.store import ARTIFACTS

PAGE = "report/index.html"
SERVED = "report.html"  # among the artifacts, which is all that the server of the UI gives out


def experiment_note(
    study: str, title: str, question: str, metrics: Sequence[str], served: bool
) -> str:
    """Return a study's description, in Markdown: question, report, what to compare by.

    ``served`` says that the server of the UI has the report (``publish_reports``).
    """
    compared = ", ".join(f"`{name}`" for name in metrics)
    link = (
        f", or [download it]({served_at(study)}) as it was when this server started"
        if served
        else ""
    )
    parts = (
        f"**{title}**",
        question,
        f"Report: `{study}/{PAGE}` in the folder of the results{link}.",
        f"Compare runs by {compared} (after the last epoch) over `loss`, `batch_size`, `seed`, "
        "`dataset`, `setting`. Further values: `best/...` best test epoch, `curve/...` per epoch, "
        "`cost/...` speed and memory.",
    )
    return "\n\n".join(part for part in parts if part)


def run_note(run_id: str, reason: str) -> str:
    """Return the description of a run: why it ended early, if it did, and where its files are."""
    files = f"Files: `runs/{run_id}` in the folder of the results."
    return f"Diverged: {reason}\n\n{files}" if reason else files


def served_at(study: str) -> str:
    """Return the address of the report of ``study`` on the server of the UI, from its root."""
    return f"/api/2.0/mlflow-artifacts/artifacts/{study}/{SERVED}"


def publish_reports(results: Path) -> None:
    """Copy every study's report among the artifacts, where the UI can serve it."""
    for page in Path(results).glob(f"*/{PAGE}"):
        study = page.relative_to(results).parts[0]
        copy_file(page, Path(results) / ARTIFACTS / study / SERVED)
