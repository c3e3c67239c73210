"""What is asked: the figures as people type them, checked all at once."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from benchmark.core.errors import ConfigError
from benchmark.metrics.names import check_metric

# few digits: 0e999 is zero, and half of its last digit is more than any number
NUMBER = re.compile(r"(?a)[+-]?(\d{1,20}\.?\d{0,20}|\.\d{1,20})([eE][+-]?\d{1,2})?")


@dataclass(frozen=True)
class Question:
    """Scores and spreads in percentage points.

    ours              the score of each run, or the mean of ``n`` runs
    spread            standard deviation of one run, taken as known; None: from the figures
    published_spread  standard deviation that is printed beside ``published``
    published_n       runs behind ``published``; None: not stated, counts as one
    rounding          half a unit of the last printed digit
    family            numbers that are judged together, this one included
    """

    ours: tuple[float, ...]
    n: int
    published: float
    margin: float
    spread: float | None = None
    published_spread: float | None = None
    published_n: int | None = None
    rounding: float = 0.0
    family: int = 1

    @property
    def mean(self) -> float:
        """The mean of ours."""
        return float(np.mean(self.ours))


def question(
    *,
    ours: Sequence[str],
    published: str | None,
    default_margin: Callable[[str, float], float | None],
    metric: str = "recall_at_1",
    margin: str | None = None,
    n: str | None = None,
    spread: str | None = None,
    published_spread: str | None = None,
    published_n: str | None = None,
    family: str = "1",
    unexpected: Sequence[str] = (),
) -> Question:
    """Return the question that the texts of the options ask; raise ConfigError with every problem.

    ``default_margin`` returns the margin of a metric for a published score. ``unexpected`` are
    words that belong to no option.
    """
    check = _Check()
    for word in unexpected:
        check.problems.append(
            f"'{word}' belongs to no option: write '--ours {word}' if it is a run"
        )
    scores = [check.score("--ours", text) for text in ours]
    if not ours:
        check.problems.append("--ours is missing: the score that you got, such as --ours 62.4")
    reference = math.nan
    if published is None:
        check.problems.append(
            "--published is missing: the score in the paper, such as --published 65.9"
        )
    else:
        reference = check.score("--published", published)
    count = check.count("--n", n) if n is not None else len(ours)
    if count and len(ours) > 1 and count != len(ours):
        check.problems.append(
            f"--n: {count} runs, but {len(ours)} values of --ours; give each run its value, or "
            "their mean and --n"
        )
    asked = {
        "spread": check.optional("--spread", spread),
        "published_spread": check.optional("--published-spread", published_spread),
    }
    runs = check.count("--published-n", published_n) if published_n is not None else None
    tests = check.count("--family", family)
    width = check.optional("--margin", margin)
    if width is None:
        width = check.margin(metric, reference, default_margin)
    if check.problems:
        raise ConfigError("judge", check.problems)
    return Question(
        ours=tuple(scores),
        n=count,
        published=reference,
        margin=width,
        published_n=runs,
        rounding=half_of_last_digit(str(published)),
        family=tests,
        **asked,
    )


def half_of_last_digit(text: str) -> float:
    """Return half a unit of the last printed digit: 0.05 for 65.9, 0.5 for 66."""
    exponent = Decimal(text.strip()).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)


class _Check:
    """Reads numbers and keeps what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def _number(self, option: str, text: str, example: str) -> float:
        if NUMBER.fullmatch(text.strip()):
            return float(text)
        advice = f"write a number such as {example}"
        if "±" in text or "+-" in text:
            advice = "write the number alone; its spread has an option of its own"
        elif "," in text:
            advice = "the decimal sign is a point, and several runs are several --ours"
        elif "%" in text:
            advice = "leave out the sign %; scores are in percent anyway"
        self.problems.append(f"{option}: '{text}' is not a number; {advice}")
        return math.nan

    def score(self, option: str, text: str) -> float:
        """Return a score in percent."""
        value = self._number(option, text, "62.4")
        if value < 0 or value > 100:
            self.problems.append(f"{option}: {text} is no score; scores are 0 to 100 percent")
        elif 0 < value <= 1:
            self.problems.append(
                f"{option}: {text} looks like a fraction; scores are in percent, such as "
                f"{100 * value:g}"
            )
        return value

    def above_zero(self, option: str, text: str) -> float:
        """Return a number of points above 0 and up to 100."""
        value = self._number(option, text, "0.3")
        if value <= 0 or value > 100:
            self.problems.append(f"{option}: {text} must be above 0 and at most 100 points")
        return value

    def optional(self, option: str, text: str | None) -> float | None:
        """Return a number of points above 0, or None when it was not given."""
        return None if text is None else self.above_zero(option, text)

    def margin(
        self, metric: str, reference: float, default: Callable[[str, float], float | None]
    ) -> float:
        """Return the margin of a metric, whose name may be written as tables show it."""
        name = re.sub(r"(?i)^(?:r|recall)@(?=\d)", "recall_at_", metric.strip())
        name = {"map@r": "map_at_r", "map": "map"}.get(name.lower(), name)
        found = None if check_metric(name) else default(name, reference)
        if found is None:
            self.problems.append(
                f"--metric: {check_metric(name) or f'{name} has no margin; give --margin'}"
            )
            return math.nan
        return found

    def count(self, option: str, text: str) -> int:
        """Return a whole number from 1 on; 0 for what is none."""
        if re.fullmatch(r"(?a)\d{1,6}", text.strip()) and int(text) >= 1:
            return int(text)
        self.problems.append(f"{option}: '{text}' must be a whole number: 1, 2, 3, ...")
        return 0
