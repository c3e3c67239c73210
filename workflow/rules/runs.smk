# One specification and one training per run. 'snakemake ... runs' trains everything, and stops before the report.
rule runs:
    input:
        TRIALS,
        of_all_runs("result.json"),


# A study with trials: what is run in the end follows from their results. The checkpoint writes an ordinary study file.
if FLOW.study.trials:

    checkpoint select:
        input:
            [FLOW.paths(RUNS, name) for name in RECORDS],
        output:
            f"{RESULTS}/{FLOW.study.name}/selection.json",
            FLOW.selected.as_posix(),
            FLOW.tables_of_trials,
        log:
            f"{RESULTS}/{FLOW.study.name}/logs/select.log",
        localrule: True
        conda:
            ENVIRONMENT
        params:
            study=in_results(above=1, asked=FLOW.asked_in),
            digest=DIGEST,
        shell:
            "python -P -m benchmark select {params.study} > {log:q} 2>&1"


# A changed digest is what makes a run, and no other, train again.
rule spec:
    output:
        [f"{RUN}/{name}" for name in ("spec.json", *NEW_SPECS)],
    log:
        f"{RUN}/spec.log",
    params:
        digest=lambda wildcards: FLOW.run(wildcards.run).digest,
    run:
        write_spec(FLOW.run(wildcards.run), Path(output[0]).parents[6], Path(log[0]))


# The rolling checkpoint is no output: Snakemake deletes outputs before each attempt, and the next continues from it.
# Without a shared disk it is lost. What the run's queries found is empty where it was not asked for or the run diverged.
# Retries belong into a profile: in a rule they would be multiplied on a cluster.
rule train:
    input:
        partial(FLOW.reason_to_train, INSIDE),
        spec=f"{RUN}/spec.json",
    output:
        [f"{RUN}/{name}" for name in (*RECORDS, "queries.npz", "neighbours.npz", *NEW_RESULTS)],
    log:
        f"{RUN}/train.log",
    conda:
        ENVIRONMENT
    threads: lambda wildcards: FLOW.run(wildcards.run).spec.recipe.training.threads
    resources:
        mem_mb=lambda wildcards: needs(wildcards).mem_mb,
        runtime=lambda wildcards: needs(wildcards).minutes,
        gpu=lambda wildcards: needs(wildcards).gpus,
        gpu_mem_mb=lambda wildcards: needs(wildcards).gpu_mem_mb,
        attempt=lambda wildcards, attempt: attempt,
    # Without 'exec' a SIGTERM to the job would end the shell, and with it the job, before the run has saved its state.
    shell:
        "exec python -P -m benchmark train --spec {input.spec:q} --attempt {resources.attempt} > {log:q} 2>&1"


rule import_runs:
    input:
        FINISHED,
        f"{OUT}/verdicts.csv",
    output:
        f"{OUT}/imported.txt",
    log:
        f"{LOGS}/import_runs.log",
    conda:
        ENVIRONMENT
    params:
        studies=lambda wildcards: FLOW.imported,
    # Status 1: MLflow took nothing, which the log says. A study finishes without it. An output of a failed job is kept.
    shell:
        'for study in {params.studies:q}; do eval "python -P -m benchmark track import $study" || [ $? = 1 ]; done > {output:q}.part 2> {log:q}; mv {output:q}.part {output:q}'
