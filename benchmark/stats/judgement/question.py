"""What is asked: the figures as people type them, checked all at once."""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
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
    problems = [
        f"'{word}' belongs to no option: write '--ours {word}' if it is a run"
        for word in unexpected
    ]
    if not ours:
        problems.append("--ours is missing: the score that you got, such as --ours 62.4")
    if published is None:
        problems.append("--published is missing: the score in the paper, such as --published 65.9")

    def number(option: str, text: str, example: str) -> float:
        if NUMBER.fullmatch(text.strip()):
            return float(text)
        advice = f"write a number such as {example}"
        if "±" in text or "+-" in text:
            advice = "write the number alone; its spread has an option of its own"
        elif "," in text:
            advice = "the decimal sign is a point, and several runs are several --ours"
        elif "%" in text:
            advice = "leave out the sign %; scores are in percent anyway"
        problems.append(f"{option}: '{text}' is not a number; {advice}")
        return math.nan

    def score(option: str, text: str) -> float:
        value = number(option, text, "62.4")
        if value < 0 or value > 100:
            problems.append(f"{option}: {text} is no score; scores are 0 to 100 percent")
        elif 0 < value <= 1:
            words = f"looks like a fraction; scores are in percent, such as {100 * value:g}"
            problems.append(f"{option}: {text} {words}")
        return value

    def points(option: str, text: str | None) -> float | None:
        value = None if text is None else number(option, text, "0.3")
        if value is not None and (value <= 0 or value > 100):
            problems.append(f"{option}: {text} must be above 0 and at most 100 points")
        return value

    def count(option: str, text: str) -> int:
        if re.fullmatch(r"(?a)\d{1,6}", text.strip()) and int(text) >= 1:
            return int(text)
        problems.append(f"{option}: '{text}' must be a whole number: 1, 2, 3, ...")
        return 0

    scores = tuple(score("--ours", text) for text in ours)
    reference = math.nan if published is None else score("--published", published)
    runs = len(ours) if n is None else count("--n", n)
    if runs and len(ours) > 1 and runs != len(ours):
        problems.append(
            f"--n: {runs} runs, but {len(ours)} values of --ours; give each run its value, or "
            "their mean and --n"
        )
    width = points("--margin", margin)
    if margin is None:
        # the name may be written as tables show it
        name = re.sub(r"(?i)^(?:r|recall)@(?=\d)", "recall_at_", metric.strip())
        name = {"map@r": "map_at_r", "map": "map"}.get(name.lower(), name)
        problem = check_metric(name)
        width = None if problem else default_margin(name, reference)
        if width is None:
            problems.append(f"--metric: {problem or f'{name} has no margin; give --margin'}")
    asked = Question(
        ours=scores,
        n=runs,
        published=reference,
        margin=math.nan if width is None else width,
        spread=points("--spread", spread),
        published_spread=points("--published-spread", published_spread),
        published_n=None if published_n is None else count("--published-n", published_n),
        family=count("--family", family),
    )
    if problems:
        raise ConfigError("judge", problems)
    return replace(asked, rounding=half_of_last_digit(str(published)))


def half_of_last_digit(text: str) -> float:
    """Return half a unit of the last printed digit: 0.05 for 65.9, 0.5 for 66."""
    exponent = Decimal(text.strip()).as_tuple().exponent
    return 0.5 * 10.0 ** int(exponent)
