# What happens before the first run and after the last.
from benchmark.training.fork_server.starter import ForkServer

# Runs and steps on this machine are forked from a process that has everything imported; it stops with the workflow.
FORK_SERVER = ForkServer()

if workflow.is_main_process:
    # One Ctrl-C stops the workflow without a traceback, further ones do no harm; see snakemake_logger_plugin_runs.
    INTERRUPT = Interrupt(words_after_interrupt, local=lambda: workflow.local_exec)
    logger.info(
        f"study {FLOW.study.name}: {FLOW.count} runs",
        extra={
            "study": StudyFacts(
                FLOW.count, next(iter(FLOW.study.metrics)), last_words, FLOW.later
            )
        },
    )

# Steps: for fewer of them the imports of a server would cost more than it saves.
WORTH_A_SERVER = 4


# What decides the verdicts is written down before any run starts, and never again.
# The store is made before any run starts, and here rather than by a job: one that training depended on
# would make the runs that two studies share belong to one of them, and train them again for the other.
onstart:
    # Snakemake's limit of 100 jobs a second costs more than it saves, and no option switches it off: each finished job
    # adds a timer that wakes the scheduler every second, so that after a thousand jobs it does little else.
    workflow.scheduler.job_rate_limiter = None
    let_signals_in(workflow.scheduler)
    planned = {job.rule.name for job in workflow.dag.needrun_jobs()}
    # the checkpoint of a study with trials may choose runs to train
    may_train = bool(planned & {"train", "select"})
    if may_train or len(planned) > WORTH_A_SERVER:  # with 'all'
        if workflow.local_exec and not DEPLOYED:
            FORK_SERVER.start(runs=may_train)
    if may_train:
        FLOW.attempt("track", "prepare")
    if may_train or not Path(OUT, "registration.json").is_file():
        FLOW.attempt("register-analysis")


onsuccess:
    FORK_SERVER.stop()
    logger.info(last_words(finished=True), extra={"closing": True})


# After a failed run the tables and the report are built from what there is, and name what is missing; the finished
# runs go to MLflow. After Ctrl-C nobody waits for them.
onerror:
    FORK_SERVER.stop()
    if not INTERRUPT.happened:
        FLOW.attempt("finish")
        FLOW.attempt("track", "import")
        logger.info(last_words(finished=False), extra={"closing": True})
