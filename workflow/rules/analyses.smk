# The analyses behind the losses: no part of 'all', because they train networks of their own.
from benchmark.analyses import ANALYSES


localrules:
    analyses,


# snakemake ... analyses: every analysis of the study, and its report once more, with them in it.
rule analyses:
    input:
        expand(OUT + "/analyses/{name}/summary.json", name=ANALYSES.names()),
    shell:
        "{PYTHON:q} -m benchmark report {STUDY:q} --results {RESULTS:q} --partial"


# The trained embeddings are kept below analyses/embeddings, so a second attempt continues where the first ended.
rule analysis:
    output:
        OUT + "/analyses/{name}/summary.json",
    params:
        study=FLOW.study.digest,
    resources:
        mem_mb=FLOW.study.resources.mem_mb,
        runtime=10 * FLOW.study.resources.minutes,
        gpu=FLOW.study.resources.gpus,
    shell:
        "exec {TRAINER:q} -m benchmark analyse {wildcards.name} {STUDY:q} --results {RESULTS:q}"
