# From finished runs to the report. What is read of the papers is an input too (benchmark.study.data_files).
from benchmark.core.records import PAGE
from study_flow import FILES, FOLDERS


rule collect:
    input:
        FINISHED,
    output:
        runs=f"{OUT}/runs.csv",
        scores=f"{OUT}/scores.csv",
        provenance=f"{OUT}/provenance.json",
    log:
        f"{LOGS}/collect.log",
    conda:
        ENVIRONMENT
    params:
        study=in_results(above=1),
        digest=DIGEST,
    shell:
        "python -P -m benchmark collect {params.study} > {log:q} 2>&1"


# What decides the verdicts is registered by 'onstart', before any run; without a shared disk, by a rule.
REGISTERED = [f"{OUT}/registration.json"] if INSIDE.is_stored else []
if REGISTERED:

    rule register:
        output:
            REGISTERED,
        log:
            f"{LOGS}/register.log",
        priority: 100
        localrule: True
        params:
            study=in_results(above=1),
        shell:
            "python -P -m benchmark register-analysis {params.study} > {log:q} 2>&1"


# A table or figure that cannot be made is named in failed.txt; behind a rule that fails, Snakemake makes nothing.
rule build:
    input:
        rules.collect.output,
        REGISTERED,
        FLOW.tables_of_trials,
        of_all_runs("queries.npz"),
        of_all_runs("neighbours.npz"),
        expand(ANALYSIS_FILES, name=WITH_THE_REPORT),
        local(FLOW.frozen),
        local(FLOW.data("build")),
    output:
        *[f"{OUT}/{name}" for name in FILES],
        *[directory(f"{OUT}/{name}") for name in FOLDERS],
        shown(f"{OUT}/{PAGE}", "Page", shows="the whole report"),
        shown(directory(f"{OUT}/tables"), "Tables", "{shown}.html", shows="{shown}"),
        shown(directory(f"{OUT}/figures"), "Figures", "{shown}.svg", shows="{shown}"),
    log:
        f"{LOGS}/build.log",
    conda:
        ENVIRONMENT
    params:
        study=in_results(above=1),
        digest=DIGEST,
        # those that 'all' does not make count by their content
        analyses=FLOW.analysed(without=WITH_THE_REPORT),
    shell:
        "python -P -m benchmark build {params.study} > {log:q} 2>&1"


# Fails when a result has drifted from what it is judged against.
rule check:
    input:
        rules.build.output,
    log:
        f"{LOGS}/check.log",
    conda:
        ENVIRONMENT
    params:
        study=FLOW.arguments,
    shell:
        "python -P -m benchmark check {params.study} 2>&1 | tee {log:q}"
