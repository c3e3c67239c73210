# From finished runs to the report. Every step follows the study file (its digest) and the files before it.
# What a step reads of the papers is an input too (benchmark.study.data_files).
from benchmark.papers.printed.gap import gap_decreases
from benchmark.papers.printed.study import FILES as PRINTED


rule collect:
    input:
        of_all_runs("result.json"),
        of_all_runs("metrics.jsonl"),
        of_all_runs("provenance.json"),
    output:
        runs=f"{OUT}/runs.csv",
        scores=f"{OUT}/scores.csv",
        provenance=f"{OUT}/provenance.json",
    log:
        f"{LOGS}/collect.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
        digest=DIGEST,
    shell:
        "python -m benchmark collect {params.study} > {log:q} 2>&1"


rule stats:
    input:
        rules.collect.output.runs,
        rules.collect.output.scores,
    output:
        directory(f"{OUT}/stats"),
    log:
        f"{LOGS}/stats.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
        digest=DIGEST,
    shell:
        "python -m benchmark stats {params.study} > {log:q} 2>&1"


rule verdicts:
    input:
        rules.collect.output.runs,
        rules.collect.output.scores,
        FLOW.frozen,
        FLOW.data("verdicts"),
    output:
        f"{OUT}/verdicts.csv",
        f"{OUT}/verdicts_other.csv",
    log:
        f"{LOGS}/verdicts.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
        digest=DIGEST,
    shell:
        "python -m benchmark verdicts {params.study} > {log:q} 2>&1"


rule claims:
    input:
        rules.collect.output.runs,
        rules.collect.output.scores,
        FLOW.data("claims"),
    output:
        f"{OUT}/claims.csv",
        f"{OUT}/claims_parts.csv",
    log:
        f"{LOGS}/claims.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
        digest=DIGEST,
        gaps=[each.decrease for each in gap_decreases(Path(OUT))],
    shell:
        "python -m benchmark claims {params.study} > {log:q} 2>&1"


# Our side of the papers' tables, figures and sweeps.
rule papers:
    input:
        rules.collect.output.runs,
        rules.collect.output.scores,
        rules.verdicts.output,
        FLOW.data("papers"),
    output:
        *(f"{OUT}/{name}" for name in PRINTED),
    log:
        f"{LOGS}/papers.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
        digest=DIGEST,
        gaps=[each.decrease for each in gap_decreases(Path(OUT))],
    shell:
        "python -m benchmark papers {params.study} > {log:q} 2>&1"


# Chosen queries under two losses. What they rank first stands in the run folders, which no other step reads.
rule gallery:
    input:
        rules.collect.output.runs,
        rules.collect.output.scores,
        rules.stats.output,
    output:
        f"{OUT}/gallery/gallery.json",
    log:
        f"{LOGS}/gallery.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
        digest=DIGEST,
    shell:
        "python -m benchmark gallery {params.study} > {log:q} 2>&1"


COMPUTED = [
    rules.stats.output,
    rules.verdicts.output,
    rules.claims.output,
    rules.papers.output,
    rules.collect.output,
]


rule tables:
    input:
        COMPUTED,
        FLOW.data("tables"),
    output:
        directory(f"{OUT}/tables"),
    log:
        f"{LOGS}/tables.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
        digest=DIGEST,
    shell:
        "python -m benchmark tables {params.study} > {log:q} 2>&1"


rule figures:
    input:
        COMPUTED,
        FLOW.data("figures"),
    output:
        directory(f"{OUT}/figures"),
    log:
        f"{LOGS}/figures.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
        digest=DIGEST,
    shell:
        "python -m benchmark plots {params.study} > {log:q} 2>&1"


SHOWN = [
    COMPUTED,
    rules.tables.output,
    rules.figures.output,
    rules.gallery.output,
    expand(f"{OUT}/analyses/{{name}}/summary.json", name=WITH_THE_REPORT),
]


# Analyses that 'all' does not make count by their content.
rule report:
    input:
        SHOWN,
        FLOW.data("report"),
    output:
        f"{OUT}/report/index.html",
    log:
        f"{LOGS}/report.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
        digest=DIGEST,
        analyses=FLOW.analysed(without=WITH_THE_REPORT),
    shell:
        "python -m benchmark report {params.study} > {log:q} 2>&1"


# Fails when a result has drifted from what it is judged against.
rule check:
    input:
        rules.verdicts.output,
    log:
        f"{LOGS}/check.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
    shell:
        "python -m benchmark check {params.study} 2>&1 | tee {log:q}"
