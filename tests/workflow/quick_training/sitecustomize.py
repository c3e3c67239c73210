"""Tests only: ``python -m benchmark train`` writes a result at once, so that tests of the workflow
take seconds.

Put on PYTHONPATH, this replaces the module ``benchmark.training.run`` when it is imported. The
made-up numbers follow from the specification. A run whose identity contains the text in
QUICK_TRAINING_FAILS fails, and so does the share of all runs in QUICK_TRAINING_FAILING_SHARE,
chosen by a hash of the identity. With QUICK_TRAINING_DIES_LATE the process is killed after the
result was written.

Verbs that QUICK_STEPS names leave empty files where the workflow expects what they make. With
REAL_TRAINING set, runs train.
"""

import hashlib
import importlib.abc
import importlib.machinery
import os
import signal
import sys
from pathlib import Path


class _QuickTraining(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path, target=None):
        if name == "benchmark.training.run":
            return importlib.machinery.ModuleSpec(name, self)
        return None

    def exec_module(self, module):
        module.train = _train


def _train(spec_path, out=None, *, started=None, attempt=1, recorder=None):
    from made_up_records import made_up_provenance, made_up_result

    from benchmark.core.errors import RunError
    from benchmark.core.files import write_text
    from benchmark.core.records import RunSpec
    from benchmark.core.results import CurvePoint, Metrics

    spec = RunSpec.read(spec_path)
    failing = os.environ.get("QUICK_TRAINING_FAILS")
    chance = int(hashlib.sha256(spec.run_id.encode()).hexdigest()[:8], 16) / 2**32
    unlucky = chance < float(os.environ.get("QUICK_TRAINING_FAILING_SHARE", "0"))
    if unlucky or (failing and failing in spec.run_id):
        raise RunError(f"the training broke on purpose at attempt {attempt}")
    value = int(spec.digest[:4], 16) / 65536
    scores = {"test": {"recall_at_1": value, "map_at_r": value / 2, "map": value / 2}}
    result = made_up_result(
        spec,
        epochs=1,
        steps=1,
        metrics=Metrics(scores, {}),
        curve=[CurvePoint(1, 1.0, scores)],
    )
    folder = spec_path.parent
    for name in ("metrics.jsonl", "queries.npz", "neighbours.npz"):
        write_text(folder / name, "")
    made_up_provenance(spec).write(folder / "provenance.json")
    result.write(folder / "result.json")
    if os.environ.get("QUICK_TRAINING_DIES_LATE"):
        os.kill(os.getpid(), signal.SIGKILL)
    return result


# What rules take as the output of a verb, below the folder of its study; a trailing / is a folder.
OUTPUTS = {
    "collect": ("runs.csv", "scores.csv", "provenance.json"),
    "build": (
        *("verdicts.csv", "verdicts_other.csv", "claims.csv", "claims_parts.csv"),
        *("report/index.html", "report/failed.txt"),
        *("stats/", "tables/", "figures/", "gallery/"),
    ),
    "analyse": tuple(
        f"analyses/{{}}/{name}"
        for name in ("summary.json", "figure.svg", "figure.csv", "table.csv", "table.html")
    ),
    "register-analysis": ("registration.json",),
    "track": (),
    "finish": (),
}


def _do_quickly(verb, *arguments):
    from benchmark.verdicts.verdicts import FILED

    named = [word for word in arguments if word.endswith(".yaml")]
    folder = Path(arguments[arguments.index("--results") + 1]) / Path(named[0]).stem
    for name in OUTPUTS[verb]:
        path = folder / name.format(arguments[0])
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.write_text(",".join(FILED) if name.startswith("verdicts") else "")
    print("made quickly", flush=True)  # an import whose list is empty counts as missed
    os._exit(0)


sys.path.append(str(Path(__file__).resolve().parents[2] / "helpers"))
_quick = os.environ.get("QUICK_STEPS", "").split()
_words = [word for word in sys.orig_argv[1:] if word != "-P"]
if _words[:2] == ["-m", "benchmark"] and {*_words[2:3]} & {*_quick}:
    _do_quickly(*_words[2:])
if "REAL_TRAINING" not in os.environ:
    sys.meta_path.insert(0, _QuickTraining())
