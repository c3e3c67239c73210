"""Options of losses that are younger than results change no specification at their defaults."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmark.core.options import defaults_of, options_of
from benchmark.losses.catalogue import load_catalogue
from benchmark.study.model import Variant

ADDED = [
    (name, option)
    for name, facts in load_catalogue().items()
    for option, item in options_of(facts.config).items()
    if item.metadata.get("added")
]


def test_the_losses_of_papers_have_options_that_were_added():
    assert {("softbin_ap", "lowest"), ("triplet_per_anchor", "mining")} <= {*ADDED}


@pytest.mark.parametrize(("name", "option"), ADDED)
def test_an_added_option_is_in_a_specification_only_where_it_is_not_the_default(name, option):
    params = defaults_of(load_catalogue()[name].config)
    plain = Variant(name, name, params)
    assert option not in plain.choice.params
    assert {*params} - {*plain.choice.params} == {key for of, key in ADDED if of == name}
    other = replace(plain, params={**params, option: "another"})
    assert other.choice.params[option] == "another"
