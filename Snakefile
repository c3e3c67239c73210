# The workflow lies where Snakemake's catalogue looks for it; its rule 'all' is the default here, too.
from snakemake_logger_plugin_runs.inside import Inside

Inside(workflow).include_with_target("workflow/Snakefile")
