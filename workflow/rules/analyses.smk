# The analyses behind the losses. Those that train networks of their own are no part of 'all'.
from benchmark.analyses import ANALYSES

QUICK = [entry.name for entry in ANALYSES if not entry.facts.get("trains", True)]
TRAINING = [name for name in ANALYSES.names() if name not in QUICK]
WITH_THE_REPORT = QUICK if FLOW.study.references.published else []


localrules:
    analyses, quick_analysis,


# snakemake ... analyses: every analysis of the study, and its report once more, with them in it.
rule analyses:
    input:
        expand(OUT + "/analyses/{name}/summary.json", name=ANALYSES.names()),
    shell:
        "{PYTHON:q} -m benchmark report {STUDY:q} --results {RESULTS:q} --partial"


rule quick_analysis:
    output:
        OUT + "/analyses/{name}/summary.json",
    wildcard_constraints:
        name="|".join(QUICK),
    params:
        study=FLOW.study.digest,
    shell:
        "{PYTHON:q} -m benchmark analyse {wildcards.name} {STUDY:q} --results {RESULTS:q}"


# The trained embeddings are kept below analyses/embeddings, so a second attempt continues where the first ended.
rule analysis:
    output:
        OUT + "/analyses/{name}/summary.json",
    wildcard_constraints:
        name="|".join(TRAINING),
    params:
        study=FLOW.study.digest,
    resources:
        mem_mb=FLOW.study.resources.mem_mb,
        runtime=10 * FLOW.study.resources.minutes,
        gpu=FLOW.study.resources.gpus,
    shell:
        "exec {TRAINER:q} -m benchmark analyse {wildcards.name} {STUDY:q} --results {RESULTS:q}"
