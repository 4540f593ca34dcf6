"""A node: broker, controller and logs put together, started and stopped in order."""

import asyncio
import errno
import logging
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from typing import Any

from moldau.broker.broker import Broker
from moldau.broker.internal_topics import INTERNAL_TOPICS
from moldau.broker.router import Router
from moldau.kernel.disk import DiskError
from moldau.kernel.errors import ProtocolError
from moldau.kernel.ids import TopicId, TopicPartition
from moldau.log.config import Durability, LogConfig
from moldau.log.errors import AppendError, DirectoryRefusedError
from moldau.log.identity import MetaProperties
from moldau.metadata.configs import Resource, ResourceType
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.effective import BrokerLayers, broker_settings
from moldau.metadata.settings.listeners import ListenerSetting, listeners_of
from moldau.replication.replicas import Replicas
from moldau.runtime.broker_logs import NEVER, BrokerLogs
from moldau.runtime.client_metrics import measure_clients
from moldau.runtime.coordinator_metrics import measure_coordinators
from moldau.runtime.coordinator_watch import CoordinatorWatch
from moldau.runtime.directory_assignments import DirectoryAssignments
from moldau.runtime.directory_lock import DirectoryInUseError
from moldau.runtime.environment import NodeEnvironment, StoredDisk
from moldau.runtime.formatting import Memory, prepare_directories, prepare_memory
from moldau.runtime.listener import Listener
from moldau.runtime.log_configs import TopicConfigs, dynamic_layers, store_settings_of
from moldau.runtime.log_opening import OpenContext
from moldau.runtime.log_store import LogStore
from moldau.runtime.log_watch import Directories, LogWatch
from moldau.runtime.logger_levels import LoggerLevels
from moldau.runtime.loop_delay import LoopDelay
from moldau.runtime.metadata_applier import MetadataApplier
from moldau.runtime.metadata_host import MetadataHost
from moldau.runtime.metrics import Metrics
from moldau.runtime.metrics_server import MetricsServer
from moldau.runtime.node_metrics import measure_applier, measure_cleaner, measure_logs
from moldau.runtime.registration import Registration, RegistrationRefusedError
from moldau.runtime.request_watch import RequestWatch
from moldau.runtime.topic_metrics import measure_cluster, measure_topics, measure_waiting

logger = logging.getLogger("moldau.node")


class ListenError(Exception):
    """A listener cannot be opened."""


REFUSALS = (
    DirectoryInUseError,
    DirectoryRefusedError,
    DiskError,
    ListenError,
    ProtocolError,
    RegistrationRefusedError,
)
"""What is wrong with what a node was given, and not with the node."""


class StartRefusedError(Exception):
    """A node cannot start; one line for its operator."""


class Node:
    """One process of a cluster; today all of it.

    `start` returns when clients are served. `failure` is done when the node cannot go on, and has
    to be stopped.
    """

    def __init__(
        self,
        static: dict[str, str],
        environment: NodeEnvironment,
        *,
        grown: Callable[[], None] = lambda: None,
        memory: Memory | None = None,
        listener: Callable[..., Listener] = Listener,
    ) -> None:
        """Take the texts of the settings, from file and command line.

        `grown` is called when very many objects have come that stay: a process that is nothing but
        a node need not look for garbage among them, which would take turns of a tenth of a second.
        The others are for who has a memory or a network of its own.
        """
        self._layers = BrokerLayers(static)
        self._grown = grown
        self._environment = environment
        self._memory = memory or Memory()
        self._make_listener = listener
        self.settings = broker_settings(self._layers)
        self.metrics = Metrics()
        self.addresses: tuple[ListenerSetting, ...] = ()
        """Where clients are served, with real ports."""
        self.metrics_address = ""
        """Where metrics are served; empty if they are not."""
        self.cluster_id = ""
        self.is_new = False
        """Whether the cluster was made just now."""
        self.failure: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
        self._running = AsyncExitStack()
        self._hurry = asyncio.Event()
        self._listener: Listener | None = None

    @property
    def broker(self) -> Broker:
        """What handlers work with."""
        return self._broker

    @property
    def logs(self) -> LogStore:
        """All logs, once it has started."""
        return self._store

    async def start(self) -> None:
        """Start everything; what was started is stopped again if something fails."""
        try:
            await self._start()
        except BaseException as error:
            self._hurry.set()
            await self.stop()
            if isinstance(error, REFUSALS):
                raise StartRefusedError(str(error)) from error
            raise

    async def stop(self) -> None:
        """Answer what was asked, leave the cluster, and close everything in good order."""
        await self._running.aclose()

    def hurry(self) -> None:
        """Stop without waiting for clients."""
        self._hurry.set()

    async def _start(self) -> None:
        metadata = await self._open_metadata()
        self._topic_configs = TopicConfigs(self._overrides_of)
        self._image = metadata.image  # until that of the broker is there
        layers = dynamic_layers(self._layers.static, metadata.image.configs, self.settings.node_id)
        self._topic_configs.use(broker_settings(layers))
        self._watch = LogWatch()
        self._store = await self._open_logs()
        self._grown()
        self._registration = Registration(
            self.settings, self.cluster_id, metadata.controller, lambda: self._applier.offset
        )
        self._running.push_async_callback(self._close_logs)
        self._image = await metadata.start()
        self._make_broker(metadata)
        metadata.controller.apply = self._applier.enqueue
        metadata.controller.cannot_follow = self._fail
        self._applier.begin_at(metadata.high_watermark)
        is_complete = not self._watch.broken_roots
        await self._applier.reconcile(metadata.removed_ids, is_complete=is_complete)
        self._in_background(self._applier.run())
        self._running.push_async_callback(self._applier.stop)
        self._in_background(self._store.run())
        metadata.begin()
        await self._serve()

    # Parts.

    async def _open_metadata(self) -> MetadataHost:
        settings, environment = self.settings, self._environment
        disk: StoredDisk
        if settings.durability == Durability.MEMORY.value:
            disk = self._memory.metadata
            self._prepared = prepare_memory(settings, self._memory, environment)
        else:
            self._prepared = prepare_directories(settings, environment)
            self._running.callback(self._prepared.release)
            disk = environment.open_disk(settings.metadata_log_directory)
        self.cluster_id, self.is_new = self._prepared.cluster_id, self._prepared.is_new
        host = await MetadataHost.open(settings, self._prepared, disk, environment, self._fail)
        self._metadata = host
        self._running.push_async_callback(host.close)
        return host

    async def _open_logs(self) -> LogStore:
        settings, prepared = self.settings, self._prepared
        context = OpenContext(
            identity=MetaProperties(
                prepared.cluster_id, prepared.node_id, prepared.metadata_directory_id
            ),
            environment=self._environment,
            config_of=self._log_config_of,
            memory=self._memory.logs,
            notice=self._watch.notice,
            durability=Durability(settings.durability),
            recovery_threads=settings.num_recovery_threads_per_data_dir,
            open_files_max=self._environment.open_files_max(
                settings.moldau_open_files_max, len(settings.log_directories)
            ),
            locks=prepared.locks,
        )
        roots = settings.log_directories
        return await LogStore.open(roots, context, self._watch, store_settings_of(settings))

    async def _close_logs(self) -> None:
        await self._store.close(self._registration.broker_epoch)

    def _make_broker(self, metadata: MetadataHost) -> None:
        settings = self.settings
        region_bytes_min = settings.moldau_fetch_sendfile_min_bytes
        logs = BrokerLogs(
            self._store,
            self.end_turn,
            region_bytes_min=NEVER if region_bytes_min < 0 else region_bytes_min,
        )
        self._broker = Broker(
            node_id=settings.node_id,
            cluster_id=self.cluster_id,
            layers=self._layers,
            settings=settings,
            image=self._image,
            controller=metadata.controller,
            environment=self._environment,
            replicas=Replicas(settings.node_id, self._is_known, logs, INTERNAL_TOPICS),
            logs=logs,
            directories=Directories(self._store, self._watch.broken_roots),
            loggers=LoggerLevels(),
            shard_watch=CoordinatorWatch(self.metrics),
        )
        self._assignments = DirectoryAssignments(
            metadata.controller, settings.node_id, lambda: self._registration.broker_epoch
        )
        self._store.moves.flush = self.flush
        self._store.moves.assign = self._assign_directory
        self._watch.serve(self._broker.replicas, self._registration, self._store)
        self._applier = MetadataApplier(
            self._broker,
            self._store,
            self._topic_configs,
            self._assignments,
            flush=self.flush,
            settings_changed=self._settings_changed,
            applied=lambda offset: metadata.snapshots.consider(self._image, offset),
            grown=self._grown,
        )

    async def _serve(self) -> None:
        router = Router(self._broker, RequestWatch(self.metrics))
        listener = self._make_listener(router, self.end_turn, self.metrics, self._environment)
        if self.settings.durability != Durability.MEMORY.value:
            self._store.writes.use_threads(self.settings.num_io_threads, listener.buffers.lend)
        self._listener = listener
        self._running.push_async_callback(self._registration.leave)
        try:
            self.addresses = listener.open()
        except OSError as error:
            raise ListenError(_unopened(self.settings, error)) from error
        self._running.push_async_callback(self._stop_serving, listener)
        epochs = [host.previous_epoch for host in self._store.hosts]
        await self._registration.register(
            self.addresses,
            [host.identity.directory_id or b"" for host in self._store.hosts],
            incarnation_id=self._environment.entropy(16),
            previous_epoch=epochs[0] if len(set(epochs)) == 1 else -1,
        )
        await self._assignments.begin()
        await self._registration.unfence()
        self._measure()
        await self._serve_metrics()
        await listener.serve()

    def _measure(self) -> None:
        metrics, now = self.metrics, self._environment.now
        measure_logs(metrics, self._store)
        if self._store.cleaner is not None:
            measure_cleaner(metrics, self._store.cleaner.stats, now)
        measure_topics(metrics, self._broker)
        measure_cluster(metrics, self._broker)
        measure_applier(metrics, self._applier)
        measure_waiting(metrics, self._broker)
        measure_coordinators(metrics, self._broker)
        measure_clients(metrics, self._broker.telemetry, now)
        delay = LoopDelay(
            metrics.histogram("moldau_loop_delay_seconds", "How late the event loop is."),
            self._environment,
        )
        self._running.callback(delay.close)

    async def _serve_metrics(self) -> None:
        if not self.settings.moldau_metrics_listener:
            return
        host, _, port = self.settings.moldau_metrics_listener.rpartition(":")
        server = MetricsServer(self.metrics, self._environment.stopwatch)
        try:
            bound = await server.start(host.strip("[]"), int(port))
        except (OSError, OverflowError) as error:
            raise ListenError(f"cannot serve metrics on {host}:{port}: {error}") from error
        self._running.push_async_callback(server.close)
        self.metrics_address = f"{host}:{bound}"

    async def _stop_serving(self, listener: Listener) -> None:
        grace = self.settings.moldau_shutdown_max_ms / 1000
        closing = asyncio.ensure_future(listener.close(grace))
        hurrying = asyncio.ensure_future(self._hurry.wait())
        await asyncio.wait([closing, hurrying], return_when=asyncio.FIRST_COMPLETED)
        if not closing.done():
            await listener.close(0.0)
        hurrying.cancel()
        await closing

    def _in_background(self, work: Coroutine[Any, Any, None]) -> None:
        """Run something until the node stops; it must not end before."""
        task = asyncio.create_task(work)
        task.add_done_callback(self._ended)

        async def end() -> None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

        self._running.push_async_callback(end)

    def _ended(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("a part of the node has failed", exc_info=error)
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        if not self.failure.done():
            self.failure.set_result(error)

    # What parts ask for.

    def flush(self) -> None:
        """Write everything that is staged, and answer who waited for it."""
        self._settle(self._store.write())

    def end_turn(self) -> None:
        """Write what the requests of a turn have staged; threads may go on writing."""
        self._settle(self._store.writes.end_turn())

    def _settle(self, failures: Mapping[TopicPartition, AppendError]) -> None:
        if failures:
            for partition, error in failures.items():
                self._broker.replicas.failed(partition, error)
        self._broker.write_deadlines.settle()
        self._broker.parking.settle()

    async def _assign_directory(
        self, partition: TopicPartition, topic_id: TopicId, directory_id: bytes
    ) -> None:
        await self._assignments.tell(topic_id, partition.partition, directory_id)

    def _is_known(self, topic: str, partition: int) -> bool:
        found = self._image.topics.find(topic)
        return found is not None and partition in found.partitions

    def _overrides_of(self, topic: str) -> Mapping[str, str]:
        return self._image.configs.of(Resource(ResourceType.TOPIC, topic))

    def _log_config_of(self, topic: str) -> LogConfig:
        return self._topic_configs.of_topic(topic)[0]

    def _settings_changed(self) -> None:
        """The broker goes by other settings: so do the controller and the logs."""
        self.settings = self._broker.settings
        self._metadata.rules.change(self._broker.layers, self._broker.settings)
        self._store.configure(store_settings_of(self._broker.settings))
        self._store.writes.configure(self._broker.settings.num_io_threads)
        if self._listener is not None:
            self._listener.settings_changed()


def _unopened(settings: BrokerSettings, error: OSError) -> str:
    wanted = ", ".join(f"{each.host or '*'}:{each.port}" for each in listeners_of(settings))
    reason = error.strerror or str(error)
    if error.errno == errno.EADDRINUSE:
        reason = "another program listens there; choose another port, such as --port 0 for any"
    return f"cannot listen on {wanted}: {reason}"
