"""The report as PDF, printed by a headless browser with the page's own print styles."""

import shutil
import subprocess
import tempfile
from pathlib import Path

from benchmark.core.errors import RunError
from benchmark.core.files import replacing

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 300


def browser() -> str | None:
    """Return the path of a headless Chromium or Chrome, or None."""
    return next((path for name in BROWSERS if (path := shutil.which(name))), None)


def write_pdf(page: Path) -> Path:
    """Write the PDF of a report beside it; return its path. Raise RunError without a browser."""
    page = Path(page)
    target = page.with_name("report.pdf")
    program = browser()
    if program is None:
        raise RunError(
            f"{target} needs a headless browser, and none of {', '.join(BROWSERS)} is installed; "
            "install one, or open "
            f"{page} in any browser and print it to a file: it has print styles"
        )
    with replacing(target) as temporary, tempfile.TemporaryDirectory() as profile:
        command = [
            program,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={profile}",
        ]
        command += [
            "--no-pdf-header-footer",
            f"--print-to-pdf={temporary}",
            page.resolve().as_uri(),
        ]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SECONDS, check=False
            )
        except subprocess.TimeoutExpired as error:
            raise RunError(
                f"{program} did not print {page} within {SECONDS} s; print it from a browser"
            ) from error
        if done.returncode or not temporary.stat().st_size:
            last = (done.stderr.strip().splitlines() or ["no message"])[-1]
            raise RunError(
                f"{program} could not print {page} ({last}); "
                "open the page in a browser and print it"
            )
    return target
