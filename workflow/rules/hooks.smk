# What happens before the first run and after the last.
import signal
from benchmark.report.summary import last_words, words_after_interrupt
from benchmark.training.fork_server import ForkServer

# Runs on this machine are forked from a process that has everything imported; it stops with the workflow.
FORK_SERVER = ForkServer()

SAID, ASKED = Path(f"{LOGS}/import_runs.log"), lambda: workflow.dag.targetfiles
WORDS = partial(last_words, lambda: FLOW.reported, Path(RESULTS), SAID, ASKED)

if workflow.is_main_process:
    # One Ctrl-C stops the workflow without a traceback, further ones do no harm; see snakemake_logger_plugin_runs.
    said = partial(words_after_interrupt, FLOW.study, Path(RESULTS))
    INTERRUPT = Interrupt(said, local=lambda: workflow.local_exec)
    logger.info(
        f"study {FLOW.study.name}: {FLOW.count} runs",
        extra={"study": StudyFacts(FLOW.count, next(iter(FLOW.study.metrics)), WORDS, FLOW.later)},
    )


# What decides the verdicts is written down before any run starts, and never again.
onstart:
    or_end(lambda: check_executor(workflow.executor_plugin.name), logger.error)
    # Snakemake's limit of 100 jobs a second costs more than it saves, and no option switches it off: each finished job
    # adds a timer that wakes the scheduler every second, so that after a thousand jobs it does little else.
    workflow.scheduler.job_rate_limiter = None
    handle_in_a_thread(signal.SIGTERM)
    planned = {job.rule.name for job in workflow.dag.needrun_jobs()}
    may_train = bool(planned & {"train", "select"})  # which chooses runs to train
    if may_train and workflow.local_exec and not DEPLOYED:
        FORK_SERVER.start()
    if not STORED and (may_train or not Path(OUT, "registration.json").is_file()):
        FLOW.attempt("register-analysis")


onsuccess:
    FORK_SERVER.stop()
    logger.info(WORDS(True), extra={"closing": True})


# After a failed run the tables and the report are built from what there is, and name what is missing; the finished
# runs go to MLflow. After Ctrl-C nobody waits for them.
onerror:
    FORK_SERVER.stop()
    if INTERRUPT.happened:
        sys.exit(128 + INTERRUPT.happened)
    FLOW.attempt("finish")
    FLOW.attempt("track", "import")
    logger.info(WORDS(False), extra={"closing": True})
