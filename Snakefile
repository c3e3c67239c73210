# Every loss x dataset x batch size x seed of a study, up to its report.
#   snakemake --profile workflow/profiles/local                        the study 'embedded'
#   snakemake --profile slurm --config study=smoke                     another study, on a cluster
#   snakemake --profile workflow/profiles/local --configfile my.yaml   a study file of your own
#   ... --sdm conda, or --sdm apptainer                                software from envs/ (envs/README.md)
# What is run comes from benchmark.study; what it needs, from benchmark.study.grid. This file has no logic.
from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/common.smk"


if DEPLOYED:  # Snakemake refuses a path with blanks, also where no image is asked for

    container: str(Path(workflow.basedir) / "benchmark.sif")  # built from envs/apptainer.def


wildcard_constraints:
    run=r"[^/]+/[^/]+/[^/]+/bs\d+/seed\d+",


localrules:
    all,
    runs,
    spec,
    import_runs,
    collect,
    build,
    check,
    analyses,
    quick_analysis,


include: "workflow/rules/hooks.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/analyses.smk"
include: "workflow/rules/report.smk"


# Every run is asked for by itself: the report of a failed study stands for no run that is still missing. So are tables
# and analyses: Snakemake makes nothing again that only stands behind a file that is there.
rule all:
    default_target: True
    input:
        TRIALS,
        of_all_runs("result.json"),
        rules.collect.output,
        expand(ANALYSIS_FILES, name=WITH_THE_REPORT),
        rules.build.output,
        f"{OUT}/imported.txt",
