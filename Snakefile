# The workflow lies where Snakemake's catalogue looks for it; its rule 'all' is the default here, too.
workflow.include("workflow/Snakefile", overwrite_default_target=True)
