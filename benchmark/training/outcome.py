"""What a finished run leaves behind: provenance.json and result.json."""

import resource
from pathlib import Path

import torch

from benchmark.core import provenance
from benchmark.core.files import require_folder
from benchmark.core.records import PROVENANCE, RESULT
from benchmark.core.results import (
    BestScore,
    CurvePoint,
    DatasetContent,
    EpochRecord,
    MemoryUse,
    Metrics,
    Numerics,
    Provenance,
    Result,
    Timing,
)
from benchmark.training.components import Components
from benchmark.training.state import RunState


def write_outcome(
    folder: Path, components: Components, state: RunState, timing: Timing, reason: str = ""
) -> Result:
    """Write provenance.json, then result.json, whose presence says that the run is finished.

    Return the result. Raise RunError when the folder is gone.
    """
    source = make_provenance(components, state, timing)
    result = make_result(components, state, reason)
    for record, name in ((source, PROVENANCE), (result, RESULT)):
        require_folder(folder)
        record.write(folder / name)
    return result


def make_result(components: Components, state: RunState, reason: str) -> Result:
    """Return the result, which is the same bits for the same specification and code."""
    spec, dataset, identity = components.spec, components.dataset, components.identity()
    curve = [CurvePoint(item.epoch, item.loss, item.evaluation or {}) for item in state.records]
    last = state.records[-1].evaluation if state.records and not reason else None
    return Result(
        run_id=spec.run_id,
        spec_digest=identity.spec_digest,
        code_version=identity.code_version,
        status="diverged" if reason else "ok",
        reason=reason,
        epochs=state.epoch,
        steps=state.step,
        metrics=Metrics(last or {}, best_epochs(state.records)),
        curve=curve,
        batch_stream=state.batch_stream(),
        dataset=DatasetContent(spec.dataset.name, dataset.fingerprint, dataset.counts),
    )


def best_epochs(records: list[EpochRecord]) -> dict[str, dict[str, BestScore]]:
    """Return {split: {metric: best evaluation on the test set}}, the first one on ties."""
    best: dict[str, dict[str, BestScore]] = {}
    for record in records:
        for split, metrics in (record.evaluation or {}).items():
            for metric, value in metrics.items():
                before = best.setdefault(split, {}).get(metric)
                if before is None or value > before.value:
                    best[split][metric] = BestScore(value, record.epoch)
    return best


def make_provenance(components: Components, state: RunState, timing: Timing) -> Provenance:
    """Return who computed this and at what cost: what may differ between equal results."""
    on_gpu, identity = components.device.type == "cuda", components.identity()
    peak_gpu = torch.cuda.max_memory_allocated() if on_gpu else 0
    peak_rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return Provenance(
        run_id=components.spec.run_id,
        spec_digest=identity.spec_digest,
        code_version=identity.code_version,
        timing=timing,
        memory=MemoryUse(peak_rss_mb=peak_rss / 1024, peak_gpu_mb=peak_gpu / 2**20),
        platform=identity.platform,
        hardware=provenance.hardware(),
        machines=state.machines,
        packages=provenance.packages(),
        package_digests=state.package_digests,
        weights=components.model.provenance(),
        numerics=Numerics(
            device=components.device.type,
            precision=components.recipe.training.precision if on_gpu else "float32",
            threads=torch.get_num_threads(),
            instructions=provenance.instructions(),
            deterministic=torch.are_deterministic_algorithms_enabled(),
        ),
    )
