"""What handlers work with."""

from dataclasses import dataclass, field

from moldau.broker.client_telemetry import ClientTelemetry
from moldau.broker.coordinators.coordinators import Coordinators
from moldau.broker.deadlines import ExpiryQueue
from moldau.broker.fetch_sessions import FetchSessions
from moldau.broker.parking_lot import ParkingLot
from moldau.broker.ports import (
    ControllerPort,
    DirectoriesPort,
    Environment,
    LoggersPort,
    LogsPort,
    ShardWatch,
)
from moldau.broker.producer_ids import ProducerIds
from moldau.broker.shares.shares import Shares
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.effective import BrokerLayers
from moldau.replication.replicas import Replicas


@dataclass(slots=True)
class Broker:
    """One broker: what it knows, has and can ask for."""

    node_id: int
    cluster_id: str
    layers: BrokerLayers
    """The settings by where they come from; the shell replaces them when they change."""
    settings: BrokerSettings
    """What the layers add up to."""
    image: ClusterImage
    """The cluster as far as it is committed and this broker has acted on it."""
    controller: ControllerPort
    environment: Environment
    replicas: Replicas
    logs: LogsPort
    directories: DirectoriesPort
    loggers: LoggersPort
    shard_watch: ShardWatch
    metadata_offset: int = -1
    """The last offset of the metadata log that the image has."""
    telemetry: ClientTelemetry = field(default_factory=ClientTelemetry)
    write_deadlines: ExpiryQueue = field(init=False)
    fetch_sessions: FetchSessions = field(init=False)
    fetch_bytes_out: int = field(init=False, default=0)
    """How many bytes were read for fetches and are not sent yet."""
    parking: ParkingLot = field(init=False)
    producer_ids: ProducerIds = field(init=False)
    coordinators: Coordinators = field(init=False)
    shares: Shares = field(init=False)

    def __post_init__(self) -> None:
        self.write_deadlines = ExpiryQueue(self.environment)
        slots = self.settings.max_incremental_fetch_session_cache_slots
        self.fetch_sessions = FetchSessions(slots, self.environment.entropy)
        self.parking = ParkingLot(self.environment)
        self.producer_ids = ProducerIds(self.controller, self._identity)
        self.coordinators = Coordinators(self)
        self.shares = Shares(self)

    def _identity(self) -> tuple[int, int]:
        """Return the broker's id and the epoch of its registration."""
        registration = self.image.brokers.find(self.node_id)
        return self.node_id, -1 if registration is None else registration.broker_epoch
