"""Many claims at once: false contradictions are controlled over all of them."""

from __future__ import annotations

import numpy as np
from made_up_results import candidates_of, long_table, run_table

from benchmark.papers.claim_verdicts import judge_claims
from benchmark.papers.claims import Arm, Claim, Scope


def test_false_contradictions_are_controlled_over_all_claims_of_a_reading():
    rng = np.random.default_rng(0)
    means = {"base": 0.5, **{f"l{number}": 0.5 for number in range(40)}}
    scope = (Scope(("glyphs",), backbone="r"),)
    asked = [
        Claim(
            "table 1",
            "One is better.",
            "beats",
            ("map_at_r",),
            scope,
            first=(Arm(f"l{number}"),),
            second=(Arm("base"),),
            name=f"c{number}",
        )
        for number in range(40)
    ]
    found = []
    for _ in range(20):
        runs = long_table(means, dataset="glyphs", setting="r")
        runs["value"] = rng.normal(0.5, 0.003, len(runs))
        table, _ = judge_claims(run_table(runs), asked, candidates_of(runs))
        found.append(table[table["reading"] == "here"])
    alone = [(table["p_contradicted"] <= 0.05).any() for table in found]
    controlled = [(table["verdict"] == "contradicted").any() for table in found]
    assert sum(alone) >= 10 and sum(controlled) <= 4  # all sentences are true on their edge
    assert all((table["q_contradicted"] >= table["p_contradicted"]).all() for table in found)
