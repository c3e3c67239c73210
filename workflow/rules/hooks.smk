# What happens before the first run and after the last.
import atexit

from benchmark.runs.folder import RunsFolder
from benchmark.training.fork_server.starter import WarmStarter

# Runs on this machine are forked from a process that has everything imported; it stops with the workflow.
WARM = WarmStarter()
FOLDER = RunsFolder(RESULTS)


# The store is made before any run starts, and here rather than in a rule: a rule that training depended on
# would make the runs that two studies share belong to one of them, and train them again for the other.
onstart:
    # Snakemake's limit of 100 jobs a second costs more than it saves: each finished job adds a timer that wakes the
    # scheduler every second, so that after a thousand jobs it does little else.
    workflow.scheduler.job_rate_limiter = None
    FOLDER.watch()
    atexit.register(FOLDER.say_if_gone)  # a file that is missing before a job ends Snakemake without 'onerror'
    if workflow.local_exec:
        WARM.start()
    FLOW.attempt("track", "prepare")


onsuccess:
    WARM.stop()


# After a failed run the tables and the report are built from what there is, and name what is missing; the finished
# runs go to MLflow. Where the folder of the runs is gone there is nothing to report, and its place is left alone.
onerror:
    WARM.stop()
    if not FOLDER.is_gone():
        FLOW.attempt("finish")
        FLOW.attempt("track", "import")
