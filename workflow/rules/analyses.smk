# The analyses behind the losses: no part of 'all', because they train networks of their own.
from benchmark.analyses import ANALYSES


localrules:
    analyses,


# snakemake ... analyses: every analysis of the study.
rule analyses:
    input:
        expand(OUT + "/analyses/{name}/summary.json", name=ANALYSES.names()),


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
        "{PYTHON:q} -m benchmark analyse {wildcards.name} {STUDY:q} --results {RESULTS:q}"
