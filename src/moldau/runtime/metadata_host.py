"""The cluster's metadata in this node: its log, the quorum, the controller, the snapshots."""

import asyncio
import logging
from collections.abc import Callable

from moldau.consensus.errors import UnsupportedQuorumError
from moldau.consensus.member import QuorumMember
from moldau.consensus.settings import QuorumSettings
from moldau.consensus.voters import Voter, VoterHistory, is_voter
from moldau.controller.commands import Activate
from moldau.controller.config_rules import SettingRules
from moldau.controller.controller import Controller
from moldau.kernel.disk import DiskError
from moldau.kernel.ids import Offset
from moldau.log.config import Durability
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.effective import BrokerLayers
from moldau.metadata.settings.listeners import controller_listener_of
from moldau.runtime.controller_host import ControllerHost
from moldau.runtime.environment import NodeEnvironment, StoredDisk
from moldau.runtime.formatting import Prepared, level_of, local_voter
from moldau.runtime.log_configs import controller_settings_of, metadata_log_config
from moldau.runtime.metadata_loading import LoadedMetadata, load_bootstrap, load_metadata
from moldau.runtime.metadata_log import MetadataLog, open_metadata_log
from moldau.runtime.metadata_snapshots import MetadataSnapshots, SnapshotSettings
from moldau.runtime.quorum_host import QuorumHost

logger = logging.getLogger(__name__)


class MetadataHost:
    """Everything between the metadata log and the controller's port."""

    def __init__(
        self,
        settings: BrokerSettings,
        prepared: Prepared,
        log: MetadataLog,
        loaded: LoadedMetadata,
        environment: NodeEnvironment,
        failed: Callable[[DiskError], None],
    ) -> None:
        self.removed_ids = loaded.removed_ids
        self._settings = settings
        self._prepared = prepared
        self._log = log
        self._failed = failed
        in_memory = settings.durability == Durability.MEMORY.value
        voter = local_voter(settings, prepared.metadata_directory_id)
        _refuse_peers(voter, loaded.history)

        def chance() -> float:
            return int.from_bytes(environment.entropy(4)) / 2**32

        quorum_settings = QuorumSettings(prepared.cluster_id, controller_listener_of(settings).name)
        member = QuorumMember(
            voter, quorum_settings, loaded.history, log, log.load_election(), chance
        )
        self.quorum = QuorumHost(member, log, self, environment, in_memory=in_memory)
        self.rules = SettingRules(BrokerLayers())
        controller_settings = controller_settings_of(settings, prepared.cluster_id)
        self.controller = ControllerHost(
            Controller(loaded.image, controller_settings, self.rules),
            self.quorum,
            environment,
            idle_interval_ms=settings.metadata_max_idle_interval_ms,
        )
        self.snapshots = MetadataSnapshots(
            self.quorum,
            SnapshotSettings.of(settings),
            environment,
            bytes_since=loaded.bytes_since_snapshot,
        )
        self._pruning: dict[asyncio.Task[None], None] = {}

    @classmethod
    async def open(
        cls,
        settings: BrokerSettings,
        prepared: Prepared,
        disk: StoredDisk,
        environment: NodeEnvironment,
        failed: Callable[[DiskError], None],
    ) -> "MetadataHost":
        """Load everything; `ProtocolError` and its kind say why this node cannot."""
        durability = Durability(settings.durability)
        if durability is Durability.PAGE_CACHE:
            durability = Durability.FSYNC
        log = open_metadata_log(
            disk.waiting(), metadata_log_config(settings), durability, environment.now()
        )
        for notice in log.notices:
            logger.warning("%s", notice)
        history = VoterHistory((local_voter(settings, prepared.metadata_directory_id),))
        loaded = await load_metadata(log, history)
        host = cls(settings, prepared, log, loaded, environment, failed)
        log.move_to(disk)
        return host

    @property
    def image(self) -> ClusterImage:
        """The cluster with all uncommitted changes."""
        return self.controller.controller.image

    async def start(self) -> ClusterImage:
        """Lead the quorum; return the image of what is committed, which is everything."""
        self.quorum.start()
        level = level_of(self._settings.metadata_version)
        await self.controller.ask(Activate(load_bootstrap(self._log, level)))
        return self.image.copy()

    def begin(self) -> None:
        """From now on this broker acts on what is committed."""
        self.controller.start_idling()

    @property
    def high_watermark(self) -> Offset:
        """The end of what is committed."""
        return self.quorum.member.high_watermark or Offset(0)

    # The quorum's listener.

    def committed(self, high_watermark: Offset) -> None:
        """Everything below stays."""
        self.controller.committed(high_watermark)

    def log_start_may_move(self, _to: Offset) -> None:
        """A snapshot was written: look what may go."""
        task = asyncio.create_task(self.snapshots.prune())
        self._pruning[task] = None
        task.add_done_callback(self._pruning.__delitem__)

    def quorum_failed(self, error: DiskError) -> None:
        """Without its metadata log a node cannot go on."""
        self.controller.failed()
        self._failed(error)

    # The end.

    async def close(self) -> None:
        """Stop; the log is as it is on the disk."""
        self.controller.stop_idling()
        await self.snapshots.stop()
        await asyncio.gather(*self._pruning, return_exceptions=True)
        self.snapshots.close()
        self.quorum.close()


def _refuse_peers(local: Voter, history: VoterHistory) -> None:
    """Check that this node decides alone: there are no links to other voters."""
    voters = history.voters
    if len(voters) != 1 or not is_voter(voters, local.key):
        names = ", ".join(str(voter.node_id) for voter in voters) or "nobody"
        raise UnsupportedQuorumError(
            f"the quorum's voters are {names}; node {local.node_id} with its directory"
            " is not the only one, and cannot lead alone"
        )
