# From finished runs to the report. Every step follows the study file (its digest) and the files before it.
FROZEN = [path for path in [FLOW.study.references.frozen] if path and Path(path).is_file()]
VERB = "{PYTHON:q} -m benchmark {rule} {STUDY:q} --results {RESULTS:q}"


rule collect:
    input:
        FLOW.files("result.json"),
        FLOW.files("metrics.jsonl"),
        FLOW.files("provenance.json"),
    output:
        runs=OUT + "/runs.csv",
        scores=OUT + "/scores.csv",
        provenance=OUT + "/provenance.json",
    params:
        study=FLOW.study.digest,
    shell:
        VERB


rule stats:
    input:
        OUT + "/runs.csv",
        OUT + "/scores.csv",
    output:
        directory(OUT + "/stats"),
    params:
        study=FLOW.study.digest,
    shell:
        VERB


rule verdicts:
    input:
        OUT + "/runs.csv",
        OUT + "/scores.csv",
        FROZEN,
    output:
        OUT + "/verdicts.csv",
    params:
        study=FLOW.study.digest,
    shell:
        VERB


rule claims:
    input:
        OUT + "/runs.csv",
        OUT + "/scores.csv",
    output:
        OUT + "/claims.csv",
        OUT + "/claims_parts.csv",
    params:
        study=FLOW.study.digest,
    shell:
        VERB


# Chosen queries under two losses. What they found stands in the run folders, which nothing else here reads.
rule gallery:
    input:
        rules.collect.output,
    output:
        OUT + "/gallery/gallery.json",
    params:
        study=FLOW.study.digest,
    shell:
        VERB


rule tables:
    input:
        rules.stats.output,
        rules.verdicts.output,
        rules.claims.output,
        rules.collect.output,
    output:
        directory(OUT + "/tables"),
    params:
        study=FLOW.study.digest,
    shell:
        VERB


rule figures:
    input:
        rules.tables.input,
    output:
        directory(OUT + "/figures"),
    params:
        study=FLOW.study.digest,
    shell:
        VERB.replace("{rule}", "plots")


rule report:
    input:
        rules.tables.input,
        rules.tables.output,
        rules.figures.output,
        rules.gallery.output,
        expand(OUT + "/analyses/{name}/summary.json", name=WITH_THE_REPORT),
    output:
        OUT + "/report/index.html",
    params:
        study=FLOW.study.digest,
    shell:
        VERB


# Fails when a result has drifted from what it is judged against.
rule check:
    input:
        rules.verdicts.output,
    shell:
        "{PYTHON:q} -m benchmark check {STUDY:q} --results {RESULTS:q}"
