# One specification and one training per run.
from benchmark.runs.specs import outdated


# snakemake ... runs: trains everything, and stops before the report.
rule runs:
    input:
        FLOW.files("result.json"),


# What lies on the disk counts by its content: where it is of another specification, the run is as good as forced,
# whatever the dates say and whether or not Snakemake remembers it. The job of one run has nothing to decide.
OUTDATED = set(outdated(RUNS, RESULTS)) if workflow.is_main_process else set()


def no_input_but_force(wildcards):
    path = RUN.format(run=wildcards.run) + "spec.json"
    if path in OUTDATED:
        workflow.dag.forcefiles.add(path)
    return []


# 'update' keeps the old specification until the result made from it has been put aside.
# A changed digest is what makes a run, and no other, train again.
rule spec:
    input:
        no_input_but_force,
    output:
        update(RUN + "spec.json"),
    params:
        digest=lambda wildcards: RUNS[wildcards.run].digest,
    run:
        if FOLDER.is_gone():
            workflow.scheduler.keepgoing = False  # no other run is started in its place
        FOLDER.require()
        write_spec(RUNS[wildcards.run], Path(RESULTS))


# The rolling checkpoint is no output: outputs of a failed job are deleted, and the next attempt continues from it.
# Retries belong into a profile: in a rule they would be multiplied on a cluster.
rule train:
    input:
        spec=RUN + "spec.json",
    output:
        result=RUN + "result.json",
        metrics=RUN + "metrics.jsonl",
        provenance=RUN + "provenance.json",
    log:
        RUN + "train.log",
    threads: lambda wildcards: RUNS[wildcards.run].threads
    resources:
        mem_mb=lambda wildcards: RUNS[wildcards.run].resources.mem_mb,
        runtime=lambda wildcards: RUNS[wildcards.run].resources.minutes,
        gpu=lambda wildcards: RUNS[wildcards.run].resources.gpus,
    # Without 'exec' a SIGTERM to the job would end the shell, and with it the job, before the run has saved its state.
    shell:
        "exec {TRAINER:q} -m benchmark train --spec {input.spec:q} > {log:q} 2>&1"


# A server that is away fails no study, but what it missed is not done: the list stays empty, and the next call
# imports again.
def no_input_but_force_import(wildcards):
    path = Path(OUT) / "imported.txt"
    if workflow.is_main_process and path.is_file() and not path.stat().st_size:
        workflow.dag.forcefiles.add(path.as_posix())
    return []


rule import_runs:
    input:
        no_input_but_force_import,
        FLOW.files("result.json"),
    output:
        OUT + "/imported.txt",
    shell:
        "{PYTHON:q} -m benchmark track import {STUDY:q} --results {RESULTS:q} | tee {output:q}"
