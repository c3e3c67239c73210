"""``--expect`` of ``score`` and ``judge``: one line, and exit status 0 or 1, for a CI."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmark.core.errors import ConfigError, Problem, failing, unknown

if TYPE_CHECKING:
    from benchmark.metrics.protocols import Record

CHOSEN = re.compile("_other_|easy|medium|hard")  # where these are, a protocol must be named


class ExpectedScore(NamedTuple):
    """A score in points that a metric should have, and the difference that is allowed."""

    metric: str
    points: float
    within: float


def expected_scores(
    texts: Sequence[str],
    within: str | None,
    protocol: str | None,
) -> list[ExpectedScore]:
    """Return the scores of --expect METRIC=SCORE; raise ConfigError with all problems."""
    from benchmark.metrics.protocols import family_of, meanings, written_metric
    from benchmark.stats.judgement import half_of_last_digit, read_points, read_score

    pairs = [text.partition("=") for text in texts]
    metrics = [written_metric(pair[0]) or pair[0] for pair in pairs]
    problems = failing(
        (len(set(metrics)) < len(texts), "--expect", "a metric is there twice; give each once"),
        ((within or protocol) and not texts, "--expect", "METRIC=SCORE is missing"),
    )
    problems += unknown("--expect", "metric", map(family_of, metrics), meanings("metrics"))

    def read(option: str, text: str, parse: Callable[[str], float]) -> float:
        try:
            return parse(text)
        except ValueError as error:
            problems.append(Problem(str(error), option))
            return 0.0

    points = [read("--expect", text, read_score) for _, _, text in pairs]
    allowed = read("--within", within, read_points) if within else None
    if problems:
        raise ConfigError("score", problems)
    tolerances = [allowed or half_of_last_digit(text) for _, _, text in pairs]
    return [*map(ExpectedScore, metrics, points, tolerances)]


def compared(
    records: Sequence[Record],
    expected: Sequence[ExpectedScore],
    protocol: str | None,
) -> list[dict[str, Any]]:
    """Return each expected score beside ours, and whether it is ``met``.

    Raise ConfigError for a protocol or a metric that the records lack, and where they leave open
    which protocol is meant.
    """
    ours: dict[str, dict[str, float]] = {}
    for record in records:
        ours.setdefault(record.protocol, {})[record.metric] = 100 * record.value
    if protocol is None and not any(map(CHOSEN.search, ours)):
        protocol = "gallery" if "gallery" in ours else "others"
    if protocol not in ours:
        what = f"there is no {protocol}" if protocol else "it is not clear which is meant"
        raise ConfigError("--protocol", [f"{what}; name one of: {', '.join(ours)}"])
    scores = ours[protocol]
    metrics = [item.metric for item in expected]
    if problems := [*unknown("--expect", f"metric of {protocol}", metrics, scores)]:
        raise ConfigError("score", problems)
    results = []
    for item in expected:
        score = scores[item.metric]
        met = abs(score - item.points) <= item.within + 1e-9  # rounding of floats decides nothing
        results.append(
            {
                "protocol": protocol,
                **item._asdict(),
                "ours": score,
                "met": met,
            }
        )
    return results


def scores_line(results: Sequence[Mapping[str, Any]]) -> str:
    """Return the line about expected scores: those that are not met, or else all."""
    words = "{metric} of {protocol} is {ours:.2f}, expected {points:g} within {within:g}"
    failed = [result for result in results if not result["met"]]
    return outcome(not failed, (words.format(**result) for result in failed or results))


def verdicts_line(
    answers: Sequence[Mapping[str, Any]],
    expected: str,
) -> str:
    """Return the line about an expected verdict of all answers of ``judge``."""
    others = [answer for answer in answers if answer["verdict"] != expected]
    named = [f"{answer.get('name', 'it')} is {answer['verdict']}" for answer in others]
    found = len(answers) - len(others)
    return outcome(not others, [f"{found} of {len(answers)} {expected}", *named])


def outcome(passed: bool, words: Iterable[str]) -> str:
    """Return the line of a gate."""
    return f"{'passed' if passed else 'failed'}: {'; '.join(words)}"
