# What happens before the first run and after the last.
import signal
from snakemake_logger_plugin_runs import StudyFacts
from snakemake_logger_plugin_runs.inside import Interrupt, handle_in_a_thread
from study_flow import check_executor
from benchmark.report.summary import last_words, words_after_interrupt
from benchmark.training.fork_server import ForkServer

# Runs on this machine are forked from a process that has everything imported; it stops with the workflow.
FORK_SERVER = ForkServer()

SAID = Path(f"{LOGS}/import_runs.log")
WORDS = partial(last_words, lambda: FLOW.reported, Path(RESULTS), SAID, lambda: INSIDE.targets)

if INSIDE.is_main:
    # One Ctrl-C stops the workflow without a traceback, further ones do no harm; see snakemake_logger_plugin_runs.
    said = partial(words_after_interrupt, FLOW.study, Path(RESULTS))
    INTERRUPT = Interrupt(said, lambda: INSIDE.is_local)
    logger.info(
        f"study {FLOW.study.name}: {FLOW.count} runs",
        extra={"study": StudyFacts(FLOW.count, next(iter(FLOW.study.metrics)), WORDS, FLOW.later)},
    )


# What decides the verdicts is written down before any run starts, and never again.
onstart:
    or_end(lambda: check_executor(INSIDE.executor), logger.error)
    INSIDE.start_jobs_at_once()
    handle_in_a_thread(signal.SIGTERM)
    may_train = bool(INSIDE.planned_rules & {"train", "select"})  # which chooses runs to train
    if may_train and INSIDE.is_local and not INSIDE.is_deployed:
        FORK_SERVER.start()
    if not INSIDE.is_stored and (may_train or not Path(OUT, "registration.json").is_file()):
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
