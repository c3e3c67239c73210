# The analyses behind the losses. Those that train networks of their own are no part of 'all'.
from benchmark.analyses import ANALYSES

QUICK = [entry.name for entry in ANALYSES if not entry.facts.get("trains", True)]
TRAINING = [name for name in ANALYSES.names() if name not in QUICK]
WITH_THE_REPORT = QUICK if FLOW.study.references.published else []
ANALYSIS_FILES = [
    f"{OUT}/analyses/{{name}}/{file}"
    for file in ("summary.json", "figure.svg", "figure.csv", "table.csv", "table.html")
]


# snakemake ... analyses: every analysis of the study, and its report once more, with them in it.
rule analyses:
    input:
        expand(ANALYSIS_FILES, name=ANALYSES.names()),
    log:
        f"{LOGS}/analyses.log",
    conda:
        ENVIRONMENT
    params:
        study=FLOW.arguments,
    shell:
        "python -P -m benchmark finish {params.study} > {log:q} 2>&1"


# The trained embeddings are kept below analyses/embeddings, so a second attempt continues where the first ended.
rule analysis:
    input:
        lambda wildcards: local(FLOW.data("analysis", ANALYSES[wildcards.name].facts["papers"])),
    output:
        [path for path in ANALYSIS_FILES if path.endswith((".json", ".csv"))],
        shown(f"{OUT}/analyses/{{name}}/figure.svg", "Analyses", analysis="{name}", shows="figure"),
        shown(f"{OUT}/analyses/{{name}}/table.html", "Analyses", analysis="{name}", shows="table"),
    log:
        f"{LOGS}/{{name}}.log",
    wildcard_constraints:
        name="|".join(TRAINING),
    conda:
        ENVIRONMENT
    resources:
        mem_mb=FLOW.study.resources.mem_mb,
        runtime=10 * FLOW.study.resources.minutes,
        gpu=min(1, FLOW.study.resources.gpus),
    params:
        study=in_results(above=3),
        digest=DIGEST,
    shell:
        "exec python -P -m benchmark analyse {wildcards.name} {params.study} > {log:q} 2>&1"


use rule analysis as quick_analysis with:
    wildcard_constraints:
        name="|".join(QUICK),
    resources:
        gpu=0,
