"""How recipes differ from what the papers' authors ran: one row for each value.

The paper's folder says what the paper states and what its authors' code does. Our value is read
from the recipe, so that no row can go out of date unnoticed.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Literal, NamedTuple

import yaml

from benchmark.core.errors import ReferenceDataError
from benchmark.core.options import defaults_of
from benchmark.core.recipe import UNTRAINED
from benchmark.losses.catalogue import load_catalogue
from benchmark.published.loading import load_papers
from benchmark.published.paper import shared_facts
from benchmark.published.schema import LARGE, Effect, Fact, as_yaml
from benchmark.published.vocabulary import load_vocabulary
from benchmark.study import Study
from benchmark.study.data_files import FIDELITY, PACKAGE, REPLAYED, read_rows
from benchmark.study.model import RecipeFile
from benchmark.study.recipes import overlay

# What a fact may be about besides the values of a recipe, maybe of one option or loss.
OTHER_ITEMS = (
    "dataset", "category", "interpolation", "second_compression", "packed_copies",
    "number_type_of_scores", "number_type_of_test_embeddings", "epoch_of_the_numbers",
    "length_of_training", "code_of_training", "head", "batch_size", "batches_of_an_epoch",
    "mean_of_frames",
)  # fmt: skip
# What acts on a network that is not trained.
SHOWN = (
    "dataset", "head", "model.backbone", "model.checkpoint", "model.embedding_dim",
    "model.layer_norm", "model.pooling", "input.image_size", "input.keep_aspect", "input.mean",
    "input.resize", "input.std", "evaluation", "mean_of_frames",
)  # fmt: skip
OF_LOSSES = ("losses", "loss_precision")  # sections whose items begin with a loss
WHOLE = ("evaluation.query_expansion",)  # a value, though it is a mapping
TF32 = "no GPU of the papers had TF32; nobody has compared its scores with theirs"
COLUMNS = ("item", "paper", "code", "said_by", "ours", "equal", "evidence", "effect")  # as printed


Equal = Literal["yes", "no", "not stated"]
SaidBy = Literal["paper and code", "paper alone", "code alone", "nobody"]


class Row(NamedTuple):
    """One value of a recipe beside the value of the paper and of its authors' code.

    An empty cell of the paper means that the paper says nothing of the value.

    equal     whether ours is that of the authors' code, or of the paper where the code does not say
    evidence  "replayed": two steps of the authors' program, recorded, would show another value;
              empty: the lines of the paper and of the code alone
    """

    recipe: str
    item: str
    paper: str
    stated_in: str
    code: str
    code_at: str
    ours: str
    equal: Equal
    effect: Effect
    reason: str
    evidence: Literal["", "replayed"] = ""

    @property
    def said_by(self) -> SaidBy:
        """Return who states the value."""
        if self.paper:
            return "paper and code" if self.code else "paper alone"
        return "code alone" if self.code else "nobody"

    @property
    def deviates(self) -> bool:
        """Return whether a score may differ from the paper's for this value."""
        return self.effect not in ("no effect", "none")

    @property
    def against(self) -> str:
        """Return where we follow the code against the text: "weight decay 4.0e-4 for 4.0e-5".

        Else "". Several words in the paper's cell are a description and not a value.
        """
        if not (self.paper and self.code) or self.equal != "yes":
            return ""
        stated = as_yaml(self.paper).value
        done = as_yaml(self.code).value
        if stated == done or (isinstance(stated, str) and " " in stated):
            return ""
        key = self.item.removesuffix(".name")  # a sampler or schedule by its section
        name = load_vocabulary().name("item", key.rpartition(".")[2])
        return f"{name.replace('_', ' ')} {self.code} for {self.paper}"

    @property
    def large(self) -> bool:
        """Return whether the expected effect is above 0.3 points, or unknown."""
        return self.effect in LARGE


def ledger(
    recipe: str, values: Mapping[str, Any], facts: Iterable[Fact], repository: str = ""
) -> list[Row]:
    """Return a row for each value of a recipe, then the rows for other items, such as the data.

    ``repository`` is the one that the recipe names; facts about other repositories are left out. Of
    several facts about a value the last one counts. A recipe that no fact names belongs to no paper
    and has no rows. Raise ReferenceDataError for values without a fact. Losses that no fact names
    do not belong to the paper and need no facts.
    """
    stated_facts = [fact.in_repository(repository) for fact in facts if fact.is_of(recipe)]
    if all(fact.recipe == "*" for fact in stated_facts):
        return []
    named = " ".join(fact.item for fact in stated_facts)
    by_item = {}
    missing = []
    for item in values:
        about = [fact for fact in stated_facts if fact.is_about(item)]
        if about:
            by_item[item] = about[-1]
        elif not _of_other_loss(item, named):
            missing.append(item)
    if missing:
        raise ReferenceDataError(
            f"recipe '{recipe}': no row of any {FIDELITY} is about {', '.join(missing)}; add what "
            "the paper and its authors' code say, or that they do not"
        )
    for fact in stated_facts:
        if fact.item.rpartition(".")[2] in OTHER_ITEMS:
            by_item[fact.item] = fact
    rows = []
    for item, fact in by_item.items():
        stated = fact.code or fact.paper
        ours = ""
        same = fact.effect == "none"
        if item in values:
            value = values[item]
            ours = yaml.safe_dump(value, default_flow_style=True).removesuffix("...\n").strip()
            same = as_yaml(stated).value == value
        equal: Equal = "not stated"
        if stated:
            equal = "yes" if same else "no"
        papers = (fact.paper, fact.stated_in, fact.code, fact.code_at)
        rows.append(Row(recipe, item, *papers, ours, equal, fact.effect, fact.reason))
    return rows


def _of_other_loss(item: str, named: str) -> bool:
    section, loss, *_ = item.split(".")
    return section == "losses" and f"losses.{loss}." not in named


def study_ledger(study: Study) -> list[Row]:
    """Return the ledgers of the recipes of a study; raise ReferenceDataError."""
    facts = list(shared_facts())
    for paper in load_papers().values():
        facts += paper.facts
    files = {block.recipe_name: block.file for block in study.blocks}
    rows = {}
    for name, file in files.items():
        if file is not None:
            values = _recipe_values(study, name, file)
            for row in ledger(name, values, facts, file.repository):
                rows[row.recipe, row.item] = row
    for key in rows.keys() & set(replayed_items()):
        rows[key] = rows[key]._replace(evidence="replayed")
    for recipe, item in _in_tf32(study):
        unstated = Row(recipe, item, "", "", "", "", "tf32", "not stated", "unknown", TF32)
        row = rows.get((recipe, item), unstated)
        equal: Equal = "no" if row.equal == "yes" else row.equal
        rows[recipe, item] = row._replace(ours="tf32", equal=equal, effect="unknown", reason=TF32)
    return list(rows.values())


def replayed_items() -> Iterator[tuple[str, str]]:
    """Yield recipe and item of each value that a replay of the authors' program has confirmed."""
    _, rows = read_rows(PACKAGE / REPLAYED)
    for row in rows:
        yield from ((row["recipe"], item) for item in row["items"].split())


def _in_tf32(study: Study) -> Iterator[tuple[str, str]]:
    """Yield recipe and item of each place where a study, or a recipe of anybody, asks for TF32."""
    for block in study.blocks:
        item = "training.precision"
        if "precision" in block.overrides.get("training", {}):
            item = f"options.{block.setting.options[-1]}.{item}"
        if block.recipe.training.precision == "tf32":
            yield block.recipe_name, item
        for loss, precision in block.loss_precision.items():
            if precision == "tf32":
                yield block.recipe_name, f"loss_precision.{loss}"


def rows_of_run(
    rows: Iterable[Row], recipe: str, loss: str, options: Collection[str]
) -> dict[str, Row]:
    """Return the rows that hold for a run of a registered loss, by item.

    A row about an option goes before a row about the recipe.
    """
    by_item: dict[str, Row] = {}
    for row in sorted(rows, key=lambda row: row.item.startswith("options.")):
        option = ""
        item = row.item
        if item.startswith("options."):
            _, option, item = item.split(".", 2)
        section, _, name = item.partition(".")
        other = section in OF_LOSSES and name.split(".")[0] != loss
        other |= loss == UNTRAINED and not item.startswith(SHOWN)
        if row.recipe == recipe and option in ("", *options) and not other:
            by_item[item] = row
    return by_item


def large_effects(rows: Mapping[str, Row]) -> tuple[str, ...]:
    """Return what may move the scores of a run by more than 0.3 points: ("dataset (above 1)",).

    ``rows`` are those of the run, by item.
    """
    return tuple(f"{item} ({row.effect})" for item, row in rows.items() if row.large)


def assumed(effects: Iterable[str]) -> str:
    """Return what may move a score, each once: "assumed: dataset (above 1)", or ""."""
    named = dict.fromkeys(effects)
    return f"assumed: {', '.join(named)}" if named else ""


def _recipe_values(study: Study, recipe: str, file: RecipeFile) -> dict[str, Any]:
    """Return all values of a recipe by key, with the values of the losses that a study trains.

    Values that the study itself varies, such as the temperatures of a sweep, are left out.
    """
    complete = overlay(file, {})
    losses = load_catalogue()
    values: dict[str, Any] = {}
    for block in study.blocks:
        if block.recipe_name != recipe:
            continue
        if not block.overrides:
            complete = block.recipe
        for loss in block.losses:
            plain = defaults_of(losses[loss.name].config)
            plain = {**plain, **file.losses.get(loss.name, {})}
            for name, value in plain.items():
                values[f"losses.{loss.name}.{name}"] = value
    more = {"loss_precision": file.loss_precision, "options": file.options}
    return dict(_flat({**asdict(complete), **more})) | values


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict) and value and prefix + key not in WHOLE:
            yield from _flat(value, f"{prefix}{key}.")
        elif value != {}:
            yield f"{prefix}{key}", value


def as_text(rows: Collection[Row], shown: Collection[Row]) -> str:
    """Return how many of all ``rows`` deviate, and ``shown`` for a terminal, by recipe."""
    lines = [_counted(rows)]
    if len(shown) < len(rows):
        lines.append(f"shown: the {len(shown)} that may move a score; --all shows the others")
    for recipe in dict.fromkeys(row.recipe for row in shown):
        of_recipe = [row for row in shown if row.recipe == recipe]
        values = [{**row._asdict(), "said_by": row.said_by} for row in of_recipe]
        table = [{name: name for name in (*COLUMNS, "reason")}, *values]
        widths = {}
        for name in COLUMNS:
            widths[name] = min(34, max(len(row[name]) for row in table))
        lines += ["", recipe]
        for row in table:
            cells = "  ".join(f"{row[name] or '-':{widths[name]}}" for name in COLUMNS)
            lines.append(f"  {cells}  {row['reason']}".rstrip())
    return "\n".join(lines)


def _counted(rows: Collection[Row]) -> str:
    equal = sum(row.equal == "yes" for row in rows)
    stated = sum(row.equal != "not stated" for row in rows)
    unstated = [row for row in rows if row.equal == "not stated"]
    idle = sum(row.effect == "no effect" for row in unstated)
    return (
        f"{len(rows)} values of {len({row.recipe for row in rows})} recipes: {equal} of {stated} "
        f"that paper or code state are equal; {idle} of {len(unstated)} that neither states have "
        f"no effect; {sum(row.deviates for row in rows)} may move a score, "
        f"{sum(row.large for row in rows)} of these by more than 0.3 points or by an unknown amount"
    )
