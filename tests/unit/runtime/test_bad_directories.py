"""Every way in which a log directory can be bad: one clear line, and nothing else is touched."""

import asyncio
import atexit
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import pytest

from moldau._native.records import read_batches
from moldau.kernel.disk import DiskFailedError
from moldau.kernel.ids import TopicPartition
from moldau.log.config import LogConfig
from moldau.log.errors import DirectoryRefusedError, PartitionOfflineError
from moldau.log.identity import MetaProperties
from moldau.runtime.directory_lock import DirectoryInUseError
from moldau.simulation.laws.log import check_log, check_producers
from tests.stores import TOPIC_ID, Broker, add, append, batch_of, open_store

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)
CONFIG = LogConfig(segment_bytes=2000, index_interval_bytes=200)
FIRST = "00000000000000000000"
CHECKPOINTS = (
    "recovery-point-offset-checkpoint",
    "log-start-offset-checkpoint",
    "replication-offset-checkpoint",
    "cleaner-offset-checkpoint",
)


def fill(root: Path, *, is_crash: bool, is_checkpointed: bool = True) -> list[bytes]:
    """Have two partitions written; return the first one's segments."""
    shutil.copytree(written(is_crash, is_checkpointed), root, dirs_exist_ok=True)
    return [path.read_bytes() for path in sorted((root / "t-0").glob("*.log"))]


@cache
def written(is_crash: bool, is_checkpointed: bool) -> Path:
    """Write a directory once; tests take copies of it."""
    root = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, root)

    async def run():
        broker = Broker()
        async with open_store([root], broker, CONFIG, is_crash=is_crash) as store:
            for partition in (P, Q):
                await store.create(partition, TOPIC_ID, CONFIG)
            place = store.place_of(P)
            if not is_checkpointed:
                place.core.is_checkpoint_due = lambda _: False
            for number in range(20):
                fields = {"producer_id": 7, "producer_epoch": 0, "base_sequence": number * 2}
                append(store, P, batch_of(b"value %d" % number, b"v" * 100, **fields))
                append(store, Q, batch_of(b"other %d" % number))
                assert not store.write()
                await broker.until(lambda end=number * 2: store.get(P).high_watermark > end)
            await broker.until(lambda: store.get(Q).high_watermark == 20)
            if is_checkpointed:
                await place.checkpoint(everything=True)

    asyncio.run(run())
    return root


class Opened:
    """What a start has found."""

    def __init__(self, root: Path, **options) -> None:
        self.broker = Broker()
        self.root = root
        asyncio.run(self._look(**options))

    async def _look(self, **options) -> None:
        async with open_store([self.root], self.broker, CONFIG, **options) as store:
            self.closed = dict(store.hosts[0].core.closed)
            self.ends = {p: log.log_end for p, log in store.hosts[0].core.logs.items()}
            for partition, log in store.hosts[0].core.logs.items():
                log.advance_high_watermark(log.durable_offset)
                check_log(log, store.place_of(partition).waiting)
                check_producers(log, store.place_of(partition).waiting)
            if Q not in self.closed:
                await add(store, self.broker, Q, b"goes on")

    @property
    def notices(self) -> list[str]:
        return self.broker.notices


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.mark.parametrize("is_crash", [True, False])
def test_foreign_files_and_folders_are_named_and_left_alone(root, is_crash):
    fill(root, is_crash=is_crash)
    (root / "notes.txt").write_text("mine")
    (root / "photos").mkdir()
    (root / "photos" / "me.jpg").write_text("mine")
    (root / "t-0" / "notes.txt").write_text("mine")
    (root / "u-0.0123-stray").mkdir()
    (root / "link-0").symlink_to("/etc")
    opened = Opened(root)
    assert opened.ends == {P: 40, Q: 20}
    assert sorted(opened.notices) == [
        "link-0: is no part of a log directory; left alone",
        "notes.txt: is no part of a log directory; left alone",
        "photos/: is no part of a log directory; left alone",
        "t-0/notes.txt: is no file of a log; left alone",
        "u-0.0123-stray/: is a stray replica; left alone",
    ]
    assert (root / "photos" / "me.jpg").read_text() == "mine"
    assert (root / "t-0" / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("is_crash", [True, False])
@pytest.mark.parametrize("damage", ["remove", "empty", "garbage", "cut"])
@pytest.mark.parametrize(
    "pattern", ["*.index", "*.timeindex", "*.snapshot", "leader-epoch-checkpoint"]
)
def test_what_follows_from_the_records_is_made_anew(root, pattern, damage, is_crash):
    before = fill(root, is_crash=is_crash)
    for path in (root / "t-0").glob(pattern):
        spoil(path, damage)
    opened = Opened(root)
    assert (opened.closed, opened.ends) == ({}, {P: 40, Q: 20})
    assert [path.read_bytes() for path in sorted((root / "t-0").glob("*.log"))] == before


def spoil(path: Path, damage: str) -> None:
    match damage:
        case "remove":
            path.unlink()
        case "empty":
            path.write_bytes(b"")
        case "garbage":
            path.write_bytes(os.urandom(path.stat().st_size + 1))
        case "cut":
            path.write_bytes(path.read_bytes()[:-1])


@pytest.mark.parametrize("is_crash", [True, False])
@pytest.mark.parametrize("damage", ["remove", "empty", "garbage", "newer"])
@pytest.mark.parametrize("name", CHECKPOINTS)
def test_a_bad_checkpoint_is_taken_as_absent(root, name, damage, is_crash):
    before = fill(root, is_crash=is_crash)
    path = root / name
    match damage:
        case "newer":
            path.write_text("1\n0\n")
        case "remove":
            path.unlink(missing_ok=True)
        case _:
            path.write_bytes(b"" if damage == "empty" else b"\xff\x00")
    opened = Opened(root)
    assert (opened.closed, opened.ends) == ({}, {P: 40, Q: 20})
    assert [p.read_bytes() for p in sorted((root / "t-0").glob("*.log"))] == before
    if damage in ("garbage", "newer"):
        (line,) = opened.notices
        assert line.startswith(f"{name}: ")
        assert line.endswith("; taken as absent")


@pytest.mark.parametrize("content", [None, b"", b"version: 0\ntopic_id: x", b"\xff"])
def test_a_partition_without_its_topics_id_is_named(root, content):
    fill(root, is_crash=False)
    path = root / "t-0" / "partition.metadata"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    opened = Opened(root)
    assert opened.ends == {P: 40, Q: 20}
    (line,) = opened.notices
    assert line.startswith("t-0/partition.metadata: ")
    assert line.endswith("the topic's id is not known")


@pytest.mark.parametrize("step", range(0, 100, 7))
def test_an_unsynced_segment_cut_anywhere_loses_its_end_only(root, step):
    before = fill(root, is_crash=True, is_checkpointed=False)
    (root / CHECKPOINTS[0]).unlink(missing_ok=True)
    path = sorted((root / "t-0").glob("*.log"))[-1]
    size = len(before[-1])
    path.write_bytes(before[-1][: size * step // 100])
    opened = Opened(root)
    assert opened.closed == {}
    assert int(path.stem) <= opened.ends[P] < 40
    whole = path.read_bytes()
    assert before[-1].startswith(whole)
    aside = b"".join(cut.read_bytes() for cut in (root / "t-0").glob("*.cut"))
    assert whole + aside == before[-1][: size * step // 100]


@pytest.mark.parametrize("step", range(1, 100, 9))
def test_a_bit_flipped_in_the_unsynced_tail_cuts_the_log_and_sets_the_rest_aside(root, step):
    before = fill(root, is_crash=True, is_checkpointed=False)
    (root / CHECKPOINTS[0]).unlink(missing_ok=True)
    path = sorted((root / "t-0").glob("*.log"))[-1]
    batches = read_batches(before[-1])
    batch = batches[step % len(batches)]
    # Behind the leader epoch, which no checksum covers.
    at = batch.position + 16 + (batch.size - 17) * step // 100
    flip(path, at)
    opened = Opened(root)
    assert opened.closed == {}
    assert opened.ends[P] == batch.base_offset
    (line,) = [n for n in opened.notices if n.startswith("t-0/")]
    assert f"the log ends there, at offset {batch.base_offset}" in line
    (cut,) = (root / "t-0").glob("*.cut")
    assert cut.stat().st_size == len(before[-1]) - batch.position
    assert ("WHOLE BATCHES FOLLOW" in line) == (batch is not batches[-1])


def flip(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 4
    path.write_bytes(content)


@pytest.mark.parametrize("damage", ["cut", "length", "gone"])
def test_damage_below_the_recovery_point_takes_the_partition_offline(root, damage):
    before = fill(root, is_crash=True)
    path = sorted((root / "t-0").glob("*.log"))[-1]
    match damage:
        case "cut":
            path.write_bytes(before[-1][:-1])
        case "length":
            flip(path, 11)
        case "gone":
            path.unlink()
    content = {p.name: p.read_bytes() for p in (root / "t-0").glob("*.log")}
    for _ in range(2):  # it is no better the next time
        opened = Opened(root)
        assert (list(opened.closed), list(opened.ends)) == ([P], [Q])
        (line,) = [n for n in opened.notices if n.startswith("t-0")]
        assert line.startswith("t-0: stays offline: t-0/")
        assert {p.name: p.read_bytes() for p in (root / "t-0").glob("*.log")} == content


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"version=2\ncluster.id=a cluster\nnode.id=1\n", "meta.properties:1: version 2"),
        (b"version=0\nbroker.id=1\n", "meta.properties:1: version 0"),
        (b"", "meta.properties: version 0"),
        (b"version=1\nnode.id=1\n", "cluster.id is missing"),
        (b"version=1\ncluster.id=c\nnode.id=x\n", "meta.properties:3: 'x' is not a number"),
        (b"\xff\xfe", "version 0 instead of 1"),
    ],
)
def test_a_directory_of_another_version_is_refused(root, content, reason):
    fill(root, is_crash=False)
    names = sorted(path.name for path in root.iterdir())
    (root / "meta.properties").write_bytes(content)
    with pytest.raises(DirectoryRefusedError, match=reason):
        Opened(root)
    assert sorted(path.name for path in root.iterdir()) == names
    assert (root / "meta.properties").read_bytes() == content


def test_a_directory_of_another_cluster_or_node_is_refused(root):
    fill(root, is_crash=False)
    with pytest.raises(DirectoryRefusedError, match="belongs to cluster a cluster"):
        Opened(root, identity=MetaProperties("other", 1))
    with pytest.raises(DirectoryRefusedError, match="belongs to node 1, and this is node 2"):
        Opened(root, identity=MetaProperties("a cluster", 2))
    assert Opened(root).notices == []


def test_a_copy_of_a_directory_is_refused_beside_it(root, tmp_path):
    fill(root, is_crash=False)
    shutil.copytree(root, tmp_path / "copy")

    async def run():
        async with open_store([root, tmp_path / "copy"], Broker()):
            pass

    with pytest.raises(DirectoryRefusedError, match="have the same directory id"):
        asyncio.run(run())
    assert Opened(root).notices == []


def test_a_lost_identity_is_written_anew_loudly(root):
    fill(root, is_crash=False)
    (root / "meta.properties").unlink()
    (line,) = Opened(root).notices
    assert line == "meta.properties: is missing; the partitions here are taken for node 1's"
    assert Opened(root).notices == []


def test_two_brokers_on_one_directory_is_an_error(root):
    fill(root, is_crash=False)

    async def run():
        async with open_store([root], Broker()), open_store([root], Broker()):
            pass

    with pytest.raises(DirectoryInUseError, match="is in use by this process"):
        asyncio.run(run())
    code = (
        "import sys; from moldau.runtime.directory_lock import DirectoryLock;"
        "lock = DirectoryLock(sys.argv[1]); print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(DirectoryInUseError, match=f"in use by process {holder.pid}"):
            Opened(root)
    assert Opened(root).notices == []


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="root may everything")
@pytest.mark.parametrize("name", ["", "meta.properties", "t-0", f"t-0/{FIRST}.log"])
def test_without_permission_the_directory_is_offline_with_advice(root, name):
    """As root, in a child process that has given up root's privileges."""
    fill(root, is_crash=True)
    os.chmod(root / name, 0)
    code = "import sys; from tests.unit.runtime.test_bad_directories import refused;"
    code += "refused(sys.argv[1])"
    command = [sys.executable, "-c", code, str(root)]
    if os.geteuid() == 0:
        for folder, _, names in os.walk(root):
            for path in [folder, *(os.path.join(folder, name) for name in names)]:
                os.chown(path, 65534, 65534)
        drop = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
        for parent in root.parents[:3]:
            os.chmod(parent, 0o755)
        command = [*drop, "--bounding-set=-all", "--inh-caps=-all", *command]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    os.chmod(root / name, 0o755)
    assert done.returncode == 0, done.stderr
    assert "Permission denied" in done.stdout
    assert done.stdout.count("\n") == 1


def refused(root: str) -> None:
    """Say in one line why a directory cannot be opened; runs in a child process."""
    try:
        Opened(Path(root))
    except DiskFailedError as error:
        sys.stdout.write(f"{error}\n")


def test_a_closed_partition_says_why(root):
    before = fill(root, is_crash=True)
    path = sorted((root / "t-0").glob("*.log"))[-1]
    path.write_bytes(before[-1][:-1])

    async def run():
        async with open_store([root], Broker(), CONFIG) as store:
            with pytest.raises(PartitionOfflineError, match=r"t-0 is offline: t-0/.*synced"):
                append(store, P, batch_of(b"x"))

    asyncio.run(run())
