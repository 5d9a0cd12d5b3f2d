"""Checks of the installed wheel outside the checkout: commands and their expected output."""

import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.distribution.archives import PACKAGES, ROOT

LIMIT_S = 300
SCRIPTS = ("assignor", "rolling-bounce", "spark-assign")
# v11, one running task of subtopology 0.
SUBSCRIPTION = (
    "0000000b0000000b00112233445566778899aabbccddeeff00000003683a3900000001000000000000000"
    "1fffffffffffffffeffff070000000000000000"
)
PROBLEM = {
    "name": "join",
    "config": {"num.standby.replicas": 1},
    "topics": {"orders": {"partitions": 4}},
    "subtopologies": {"0": {"sources": ["orders"], "changelogs": ["orders-store"]}},
    "clients": {"ada": {"active": ["0_0", "0_1", "0_2", "0_3"]}, "bob": {}},
}
# Fails if the import of a package's front door imports heavy packages or starts threads.
FRONT_DOORS = """
import importlib, sys, threading
for name in {doors!r}:
    importlib.import_module(name)
    heavy = {heavy!r} & {{module.partition(".")[0] for module in sys.modules}}
    others = threading.active_count() - 1 + ("multiprocessing.process" in sys.modules and len(
        sys.modules["multiprocessing.process"].active_children()))
    if heavy or others:
        sys.exit(f"{{name}} imports {{sorted(heavy)}} and starts {{others}} threads or processes")
"""
# An application of the wheel, in an empty project.
WORD_COUNT = """
import subprocess, sys
from system_tests.broker import BrokerConfig, running_broker
with running_broker(BrokerConfig(topics={"words": 4})) as broker:
    command = [sys.executable, "-u", "-m", "assignor.examples.word_count"]
    command += ["--bootstrap-server", broker.bootstrap_servers[0], "--version", "2"]
    subprocess.run([*command, "--say", "to be or not to be"], check=True)
    member = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    is_counted = "0_0 to 2\\n" in member.stdout
    member.terminate()
    sys.exit(member.wait() or (not is_counted and "the word was not counted twice"))
"""
CLIENTS = {"kafka", "aiokafka", "confluent_kafka", "prometheus_client"}
HEAVY = CLIENTS | {"pyspark", "pyarrow", "py4j", "plotly", "jpype", "pandas", "pytest"}
# These need a client or an extra themselves, or are not shipped.
MADE_OF_A_CLIENT = (
    "assignor.adapters.admin",
    "assignor.adapters.aiokafka",
    "assignor.adapters.kafka_python",
    "assignor.adapters.confluent",
    "assignor.integrations.quix",
    "spark_assign.batch",
    "spark_assign.dataframes",
    "spark_assign.huge",
    "spark_assign.tables",
    "spark_assign.whatif",
    "spark_assign.workers",
    "system_tests.live",
    "system_tests.real",
    "system_tests.soak",
    "system_tests.support",
)
COMMANDS = ("assignor.cli", "assignor.cli.main", "spark_assign.cli.main", "system_tests.cli.main")


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A command line, its exit status, and words of its output; complaints are one sentence."""

    run: str
    status: int = 0
    says: str = ""
    complains: str = ""
    stdin: str = ""
    code: str = ""

    @property
    def name(self):
        return self.run or self.code.strip().splitlines()[0]


def front_doors():
    """Every package with an `__init__.py` but those that are made of a client."""
    found = sorted(
        str(path.parent.relative_to(ROOT)).replace(os.sep, ".")
        for package in PACKAGES
        for path in (ROOT / package).rglob("__init__.py")
    )
    inside = tuple(f"{package}." for package in MADE_OF_A_CLIENT)
    return tuple(name for name in found if not f"{name}.".startswith(inside))


def front_door_check():
    doors = (*front_doors(), *COMMANDS)
    return Check(run="", code=FRONT_DOORS.format(doors=doors, heavy=HEAVY))


def _lacks(run, extra):
    return Check(run=run, status=3, complains=f"pip install 'streams-rebalance[{extra}]'")


def _asks(run, says, **more):
    return Check(run=run, says=says, **more)


_LINE = json.dumps(PROBLEM) + "\n"
_EXAMPLE = "assignor.examples.topologies"
_LIVE = (
    "rolling-bounce live --from 3.1 --to native --members 2 --seed 7 --rate 20"
    " --session-timeout-ms 60000 --timeout 300"
)
BASE = (
    *(_asks(f"{script} --version", "0.") for script in SCRIPTS),
    *(_asks(f"{script} --help", "Exit status") for script in SCRIPTS),
    _asks("assignor assign --problem - --format json", '"0_3"', stdin=_LINE),
    _asks("assignor assign --problem problem.json --simulate --format text", "bob"),
    _asks("assignor explain --problem problem.json --task 0_3", "0_3"),
    _asks("assignor diff problem.json problem.json", ""),
    _asks("assignor size --problem problem.json", "v11"),
    _asks("assignor sample --groups 2 --joined 1", '"group-1"'),
    _asks("spark-assign pack --out job", "job/run.py batch"),
    _asks(f"assignor decode --kind subscription --hex {SUBSCRIPTION}", "process_id"),
    _asks(
        "assignor decode --jsonl -",
        '"fields"',
        stdin=json.dumps({"kind": "subscription", "hex": SUBSCRIPTION}) + "\n",
    ),
    _asks("assignor negotiate --members old:3/3,new:4/4 --release 2.0.1", "rejoin 3"),
    _asks("assignor storage format --directory features", ""),
    _asks("rolling-bounce simulate --seeds 20 --format text", "20"),
    _asks("rolling-bounce simulate --world kraft --seeds 3", ""),
    _asks("rolling-bounce explore --from 3.9.1 --to native --members 2 --crashes 0", "states"),
    _asks("rolling-bounce matrix --from 2.3.1 --to 4.1", "2.3.1"),
    _asks("rolling-bounce plan --from 2.3.1 --to 4.1", "bounce"),
    _asks("rolling-bounce simulate --seed 7 --report bounce.html", ""),
    _asks(f"rolling-bounce plan --topology {_EXAMPLE}:FIRST {_EXAMPLE}:SECOND", "app-lengths-cha"),
    front_door_check(),
)
WITHOUT = {
    "kafka": (
        _lacks(_LIVE, "kafka"),
        _lacks("assignor inspect --bootstrap-server 127.0.0.1:1 --all", "kafka"),
        _lacks("assignor features describe --bootstrap-server 127.0.0.1:1", "kafka"),
        _lacks("python -m system_tests.broker --port 0", "kafka"),
    ),
    "spark": (
        _lacks("spark-assign batch --in problem.json --out plans", "spark"),
        _lacks("spark-assign simulate --seeds 4 --out found", "spark"),
    ),
}
WITH = {
    "kafka": (
        # `make test` takes every third one.
        _asks("python -m system_tests.broker --help", "--topic"),
        _asks(_LIVE, "good: "),
        Check(run="", code=WORD_COUNT),
        _asks("python -m assignor.examples.old_group --help", "--release"),
        _asks("python -m assignor.examples.orders --help", "--write"),
        _lacks(f"{_LIVE} --client mixed", "aiokafka"),
        Check(run=f"{_LIVE} --broker kafka:3.9", status=3, complains="extra"),
        Check(
            run="assignor inspect --bootstrap-server 127.0.0.1:1 --group g --timeout 1",
            status=3,
            complains="127.0.0.1:1",
        ),
        Check(run="", code="from assignor.adapters.kafka_python.assignor import StreamsAssignor"),
    ),
    "aiokafka": (
        Check(run="", code="from assignor.adapters.aiokafka.assignor import StreamsAssignor"),
    ),
    "confluent": (Check(run="", code="import confluent_kafka"),),
    "metrics": (Check(run="", code="from assignor.observe.prometheus import PrometheusHook"),),
    "http": (Check(run="", code="import waitress"),),
    "report": (Check(run="", code="import plotly"),),
    "soak": (Check(run="", code="import psutil"),),
    "spark": (
        _asks("spark-assign batch --in problem.json --out plans", ""),
        _asks("spark-assign simulate --seeds 4 --from 3.1 --to native --out found", ""),
    ),
    "real": (Check(run="", code="from system_tests.real import find_java; find_java()"),),
}
WITHOUT_JAVA = Check(
    run="spark-assign batch --in problem.json --out plans", status=3, complains="Java"
)


def checks_for(extra):
    """The checks of an environment with one extra, or without extras (`""`)."""
    if not extra:
        return (*BASE, *(check for checks in WITHOUT.values() for check in checks))
    if extra == "spark" and not has_java():
        return (WITHOUT_JAVA,)
    return WITH[extra]


def has_java():
    return "JAVA_HOME" in os.environ or shutil.which("java") is not None


def wrong_with(check, python, folder):
    """Run one check with the scripts beside `python`; return the failure, or None."""
    scripts = Path(python).parent
    if check.run:
        program, *words = check.run.split()
        command = [scripts / program, *words]
    else:
        command = [python, "-c", check.code]
    done = subprocess.run(
        command,
        cwd=folder,
        input=check.stdin,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
        env={
            **os.environ,
            "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}",
            "STREAMS_REBALANCE_JARS": str(folder / "jars"),  # what others fetched is not used
        },
    )
    rows = (
        (done.returncode != check.status, f"exit status {done.returncode}, not {check.status}"),
        ("Traceback" in done.stderr, "a traceback"),
        (check.says not in done.stdout, f"does not say {check.says!r}"),
        (check.complains not in done.stderr, f"does not complain of {check.complains!r}"),
        (
            check.complains and len(done.stderr.splitlines()) != 1,
            "complains in more than one line",
        ),
        (check.code and done.stdout, "an import prints"),
    )
    for is_wrong, sentence in rows:
        if is_wrong:
            return f"{check.name}: {sentence}\n{done.stdout[-500:]}{done.stderr[-1500:]}"
    return None
