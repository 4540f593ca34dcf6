"""An app on a cluster of several machines, of which workers are killed while they read and write.

MOLDAU_MACHINE_KILLS says how often. The machines are network namespaces: whatever works only where
driver, workers and broker share a loopback fails here.
"""

import itertools
import os
import re
import sysconfig
import tarfile
import time
import venv
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.nodes import RunningNode
from tests.spark.drivers import Driver
from tests.spark.machines import Machine, machines
from tests.spark.order_totals import SCHEMA, WATERMARK, WINDOW_SECONDS, OrderTotals
from tests.spark.reading import open_transactions
from tests.spark.small_session import SMALL
from tests.spark.standalone import run_master, run_worker

KILLS = int(os.environ.get("MOLDAU_MACHINE_KILLS", "2"))
SECONDS_MAX = 600
SEED = 17
POINTS = ("reading", "writing")
ENVIRONMENT = "environment"
ARCHIVE = "environment.tar.gz"
HELD = "held"
"""What the names of files end with that tasks make before they stand still."""

# A file for each machine grows with the rows that it reads and writes. A task that finds that its
# machine is doomed stands still until the machine is killed. Rows are the same wherever they are
# read: else Spark would give up the batch, and the query would start again.
APP = """
import socket
import sys
import time
from pathlib import Path

from moldau.pipelines import App, functions as F

app = App("shop", "SERVERS", configs=CONFIGS)
orders = app.stream("SOURCE", "SCHEMA", event_time="at", watermark="WATERMARK")


def noting(point):
    rows = []

    def note_machine(row):
        rows.append(row)
        assert Path(sys.prefix).name == "ENVIRONMENT", sys.prefix
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as way:
            way.connect(("BROKER", 9))
            machine = way.getsockname()[0]
        with Path("FOLDER", f"{point}-by-{machine}").open("a") as notes:
            notes.write(".")
        doomed = Path("FOLDER", f"{point}-{machine}")
        # The first ones of the task are on their way by now.
        while len(rows) > ROWS and doomed.exists():
            Path(f"{doomed}-HELD").touch()
            time.sleep(0.1)
        return True

    return F.udf(note_machine, "boolean")


totals = (
    orders.where(noting("reading")("user"))
    .groupBy("user", F.window("at", "WINDOW_SECONDS seconds"))
    .agg(F.sum("cents").alias("cents"), F.count("*").alias("n"))
)
named = totals.select(
    F.concat_ws("@", "user", F.unix_seconds("window.start")).alias("id"), "cents", "n"
)
# Of a sum, so that Spark does not filter before it has that.
app.to(named.where(noting("writing")("cents")), "TARGET", key="id", name="totals")
"""

ROWS = 2
"""How many a Python worker gets at a time."""
CONFIGS = SMALL | {
    "spark.sql.shuffle.partitions": 4,
    "spark.sql.execution.arrow.maxRecordsPerBatch": ROWS,
    "spark.sql.execution.python.udf.maxRecordsPerBatch": ROWS,
}
GUIDE = Path(__file__).parents[2] / "docs/running-on-a-cluster.md"


class Workers:
    """The machines that a master gives work to."""

    def __init__(self, folder: Path, url: str, places: list[Machine]) -> None:
        self.places = places
        self._folder = folder
        self._url = url
        self._running: dict[Machine, ExitStack] = {}
        self._starts = 0

    def start(self, machine: Machine) -> None:
        """Start one, for the first time or again."""
        self._starts += 1
        folder = self._folder / f"worker-{self._starts}"
        with ExitStack() as stack:
            worker = run_worker(folder, self._url, machine.address, machine.program)
            stack.enter_context(worker)
            self._running[machine] = stack.pop_all()

    def kill(self, machine: Machine) -> None:
        """End a worker, its executor and their Python processes."""
        machine.kill()
        self._running.pop(machine).close()

    def stop(self) -> None:
        """End all that are left."""
        for stack in self._running.values():
            stack.close()


@contextmanager
def running_workers(folder: Path, url: str, places: list[Machine]) -> Iterator[Workers]:
    workers = Workers(folder, url, places)
    try:
        for machine in places:
            workers.start(machine)
        yield workers
    finally:
        workers.stop()


@contextmanager
def running_broker(machine: Machine) -> Iterator[RunningNode]:
    node = RunningNode("--memory", "--host", machine.address, program=machine.program)
    try:
        yield node
    finally:
        node.stop()


class Run:
    """The driver, and what its workers have done so far."""

    def __init__(self, driver: Driver, orders: OrderTotals, folder: Path) -> None:
        self._driver = driver
        self._orders = orders
        self._folder = folder

    def wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + SECONDS_MAX
        while not condition():
            assert self._driver.is_running, self._driver.errors()
            assert time.monotonic() < deadline, self._driver.errors()
            time.sleep(0.5)

    def send_until(self, condition: Callable[[], bool]) -> None:
        """Send orders until something has happened."""

        def look() -> bool:
            self._orders.send(batches=1)
            return condition()

        self.wait_until(look)

    def wait_for(self, point: str, machine: Machine) -> None:
        """Send orders until a machine has read or written more rows."""
        notes = self._folder / f"{point}-by-{machine.address}"
        before = notes.stat().st_size if notes.exists() else 0
        self.send_until(lambda: notes.exists() and notes.stat().st_size > before)


def write_files(orders: OrderTotals, broker: Machine, driver: Machine, folder: Path) -> None:
    """Write the app, and Spark's settings for its driver."""
    text = APP
    for name, value in {
        "SERVERS": orders.servers,
        "SOURCE": orders.source,
        "TARGET": orders.target,
        "SCHEMA": SCHEMA,
        "WATERMARK": WATERMARK,
        "WINDOW_SECONDS": WINDOW_SECONDS,
        "CONFIGS": CONFIGS,
        "BROKER": broker.address,
        "FOLDER": folder,
        "HELD": HELD,
        "ENVIRONMENT": ENVIRONMENT,
        "ROWS": ROWS,
    }.items():
        text = text.replace(name, str(value))
    (folder / "app.py").write_text(text)
    (folder / "spark-defaults.conf").write_text(spark_defaults(driver))
    make_environment(folder)


def make_environment(folder: Path) -> None:
    """Make a virtual environment that finds what is installed in this one, and an archive of it."""
    made = folder / ENVIRONMENT
    venv.create(made, symlinks=True)
    (packages,) = made.glob("lib/python*/site-packages")
    installed = sysconfig.get_path("purelib")
    (packages / "all.pth").write_text(f"import site; site.addsitedir({installed!r})\n")
    with tarfile.open(folder / ARCHIVE, "w:gz") as archive:
        archive.add(made, ".")


def spark_defaults(driver: Machine) -> str:
    """Return the guide's settings, for this driver and for executors that start quickly."""
    (text,) = re.findall(r"```properties\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    settings = dict(line.split() for line in text.splitlines())
    settings |= {
        "spark.driver.host": driver.address,
        "spark.executor.memory": "600m",
        "spark.archives": f"{ARCHIVE}#{ENVIRONMENT}",
        "spark.executor.extraJavaOptions": os.environ["SPARK_SUBMIT_OPTS"],
    }
    return "".join(f"{name} {value}\n" for name, value in settings.items())


@pytest.mark.soak
def test_workers_on_other_machines_are_killed_and_every_window_is_written_once(
    topic: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    with ExitStack() as stack:
        names = ("broker", "master", "driver", "worker-1", "worker-2")
        broker, master, home, *places = stack.enter_context(machines(*names))
        node = stack.enter_context(running_broker(broker))
        url = stack.enter_context(run_master(tmp_path / "master", master.address, master.program))
        workers = stack.enter_context(running_workers(tmp_path, url, places))
        orders = OrderTotals(node, topic, SEED)
        write_files(orders, broker, home, tmp_path)
        options = ("--master", url, "--checkpoints", f"file://{tmp_path}/checkpoints", "--no-views")
        driver = stack.enter_context(
            Driver(
                "moldau.cli",
                *("pipeline", "run", str(tmp_path / "app.py"), *options),
                program=(*home.program, "env", "-C", str(tmp_path)),
                SPARK_CONF_DIR=".",
                PYSPARK_PYTHON=f"./{ENVIRONMENT}/bin/python",
            )
        )
        run = Run(driver, orders, tmp_path)
        for point, machine in itertools.product(POINTS, places):
            run.wait_for(point, machine)
        doomed, other = places
        for number in range(KILLS):
            point = POINTS[number % 2]
            if point == "writing":
                # Tasks go to where the state is: the one that was killed last reads only.
                doomed, other = other, doomed
            flag = tmp_path / f"{point}-{doomed.address}"
            flag.touch()
            run.send_until(lambda f=flag: Path(f"{f}-{HELD}").exists())
            if point == "writing":
                run.wait_until(lambda: open_transactions(orders.servers, orders.target) != [])
            workers.kill(doomed)
            flag.unlink()
            Path(f"{flag}-{HELD}").unlink()
            # The batch has to be ended without it, and so have others.
            written = orders.written()
            run.send_until(lambda n=written: orders.written() > n)
            run.wait_for("writing", other)
            workers.start(doomed)
            run.wait_for("reading", doomed)
        orders.close()
        expected = Counter(orders.expected(closed=True).items())
        run.wait_until(lambda: Counter(orders.found(is_over=False)) >= expected)
        assert driver.stop() == 0, driver.errors()
        # Spark runs tasks again; a query starts again only where the tasks get in each other's way.
        record_property("queries started again", driver.errors().count("starts again"))
        assert open_transactions(orders.servers, orders.target) == []
        assert Counter(orders.found()) == expected
