# One specification and one training per run.
# snakemake ... runs: trains everything, and stops before the report.
rule runs:
    input:
        FLOW.files("result.json"),


# 'update' keeps the old specification until the result made from it has been put aside.
# A changed digest is what makes a run, and no other, train again.
rule spec:
    input:
        outdated_spec,
    output:
        update(f"{RUN}/spec.json"),
    log:
        f"{RUN}/spec.log",
    params:
        digest=lambda wildcards: RUNS[wildcards.run].digest,
    run:
        write_specification(wildcards.run, log[0])


# The rolling checkpoint is no output: outputs of a failed job are deleted, and the next attempt continues from it.
# Retries belong into a profile: in a rule they would be multiplied on a cluster.
rule train:
    input:
        spec=f"{RUN}/spec.json",
    output:
        result=f"{RUN}/result.json",
        metrics=f"{RUN}/metrics.jsonl",
        provenance=f"{RUN}/provenance.json",
    log:
        f"{RUN}/train.log",
    conda:
        ENVIRONMENT
    threads: lambda wildcards: RUNS[wildcards.run].threads
    resources:
        mem_mb=lambda wildcards: RUNS[wildcards.run].resources.mem_mb,
        runtime=lambda wildcards: RUNS[wildcards.run].resources.minutes,
        gpu=lambda wildcards: RUNS[wildcards.run].resources.gpus,
    # Without 'exec' a SIGTERM to the job would end the shell, and with it the job, before the run has saved its state.
    shell:
        "exec python -m benchmark train --spec {input.spec:q} > {log:q} 2>&1"


rule import_runs:
    input:
        missed_import,
        FLOW.files("result.json"),
    output:
        f"{OUT}/imported.txt",
    log:
        f"{LOGS}/import_runs.log",
    conda:
        ENVIRONMENT
    params:
        study=ARGUMENTS,
    shell:
        "python -m benchmark track import {params.study} > {output:q} 2> {log:q}"
