"""The controller on the event loop: commands are decided, appended and answered when committed."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from moldau.broker.ports import Timer
from moldau.consensus.member import QuorumMember
from moldau.controller.commands import RegisterBroker, UpdateFeatures
from moldau.controller.controller import Controller
from moldau.controller.quorum_description import describe_quorum
from moldau.coordination.command import Answer, Command
from moldau.kernel.ids import Offset
from moldau.log.errors import StorageFullError
from moldau.metadata.batches import encode_records, in_batches
from moldau.protocol.errors import ErrorCode
from moldau.protocol.messages.describe_quorum import DescribeQuorumRequest, DescribeQuorumResponse
from moldau.protocol.schema import Message
from moldau.protocol.stored.cluster_metadata import AbortTransactionRecord, NoOpRecord
from moldau.runtime.environment import NodeEnvironment
from moldau.runtime.sliced_commands import CommandSlices, slices_of

logger = logging.getLogger(__name__)

RETRY_SECONDS = 1.0

ChangeDone = Callable[[Any], None]


class Quorum(Protocol):
    """Where records are appended."""

    leader_id: int | None
    member: QuorumMember

    @property
    def end_offset(self) -> Offset:
        """The offset of the next record."""

    def propose(self, values: list[bytes]) -> bool:
        """Append records; say whether they are. `StorageFullError`: there is no room for them."""

    def upgrade_kraft_version(self) -> bool:
        """Have the voters stand in the log from now on; say whether they do."""


class Change(NamedTuple):
    """Records that were appended together, and the callback for when this broker acts on them."""

    end_offset: Offset
    records: list[Message]
    then: ChangeDone | None = None
    response: Message | None = None

    def answer(self) -> None:
        """Answer the command whose last records these are."""
        self._tell(self.response)

    def refuse(self, code: ErrorCode) -> None:
        """Answer the command with an error: whether it takes effect is not known."""
        self._tell(code)

    def _tell(self, outcome: Message | ErrorCode | None) -> None:
        if self.then is None:
            return
        try:
            self.then(outcome)
        except Exception:
            # The caller is to blame for it, and what comes next is not.
            logger.exception("a decision could not be answered")


class ControllerHost:
    """Decides one command after the other; the queue is as long as there are requests.

    A decision of many records is appended over several turns of the loop, and commands that come
    meanwhile wait. What is decided is replayed at once, and answered when it is committed and
    applied by this broker; an answer without records waits for what it was decided from, too.
    """

    def __init__(
        self,
        controller: Controller,
        quorum: Quorum,
        environment: NodeEnvironment,
        *,
        idle_interval_ms: int,
    ) -> None:
        self.controller = controller
        self._quorum = quorum
        self._environment = environment
        self._clock = environment.now
        self.apply: Callable[[Change], None] = Change.answer
        """Acts on what is committed, and answers then; the node sets it when it has started."""
        self.cannot_follow: Callable[[Exception], None] = _ignore
        """Callback for an image that is not what the log says any more: the node has to end."""
        self._idle_seconds = idle_interval_ms / 1000
        self._loop = asyncio.get_running_loop()
        self._queue: deque[tuple[Command[Any], ChangeDone]] = deque()
        self._decision: _Appending | None = None
        self._changes: deque[Change] = deque()  # appended, not committed
        self._high_watermark = Offset(0)
        self._appended_at = environment.monotonic()
        self._idle_timer: Timer | None = None

    # The port.

    @property
    def leader_id(self) -> int | None:
        """The node that leads the quorum."""
        return self._quorum.leader_id

    @property
    def kraft_version(self) -> int:
        """The level of kraft.version."""
        return self._quorum.member.kraft_version

    def describe_quorum(
        self, request: DescribeQuorumRequest, then: Callable[[DescribeQuorumResponse], None]
    ) -> None:
        """Tell about the quorum."""
        quorum = self._quorum
        then(describe_quorum(request, quorum.member, quorum.end_offset, self._clock()))

    def submit(self, command: Command[Answer], then: Callable[[Answer | ErrorCode], None]) -> None:
        """Have a command decided."""
        slices = slices_of(command)
        if slices is None:
            self.submit_whole(command, then)
        else:
            _Sliced(self, slices, then).go_on()

    def submit_whole(
        self, command: Command[Answer], then: Callable[[Answer | ErrorCode], None]
    ) -> None:
        """Have a command decided at once, however large it is."""
        self._queue.append((command, then))
        self._work()

    def ask(self, command: Command[Answer]) -> "asyncio.Future[Answer | ErrorCode]":
        """Submit a command; the future has the answer, or why there is none."""
        future: asyncio.Future[Answer | ErrorCode] = self._loop.create_future()

        def answer(response: Answer | ErrorCode) -> None:
            if not future.done():
                future.set_result(response)

        self.submit(command, answer)
        return future

    # Deciding.

    def _work(self) -> None:
        while self._queue and self._decision is None:
            command, then = self._queue.popleft()
            if self._quorum.leader_id is None:
                self._loop.call_soon(then, ErrorCode.NOT_CONTROLLER)
            else:
                self._begin(command, then)

    def _begin(self, command: Command[Any], then: ChangeDone) -> None:
        try:
            decision = self.controller.decide(self._completed(command), self._clock())
            for effect in decision.effects:
                if effect.level and not self._quorum.upgrade_kraft_version():
                    self._loop.call_soon(then, ErrorCode.NOT_CONTROLLER)
                    return
            batches = in_batches(decision.records, self.controller.image.level)
            self._decision = _Appending(batches, next(batches, None), decision.response, then)
        except Exception:
            logger.exception("the controller could not decide %s", type(command).__name__)
            self._loop.call_soon(then, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        self._go_on()

    def _completed(self, command: Command[Any]) -> Command[Any]:
        """Add to a command what only the quorum knows, at the time of deciding."""
        match command:
            case RegisterBroker():
                return RegisterBroker(command.request, self._quorum.end_offset)
            case UpdateFeatures():
                return UpdateFeatures(command.request, self._quorum.member.kraft_version)
            case _:
                return command

    def _go_on(self) -> None:
        """Append the next batch of the decision under way; the last is followed by its answer."""
        decision = self._decision
        assert decision is not None
        try:
            if decision.next_batch is not None:
                if not self._append(decision.next_batch):
                    self._give_up(decision, ErrorCode.NOT_CONTROLLER)
                    return
                decision.next_batch = next(decision.batches, None)
        except StorageFullError as error:
            logger.error("the metadata log has no room: %s", error)
            self._give_up(decision, ErrorCode.NOT_CONTROLLER)
            return
        except Exception:
            # Records are made while they are walked, so a wrong decision may show only here.
            logger.exception("the controller could not go on with a decision")
            self._give_up(decision, ErrorCode.UNKNOWN_SERVER_ERROR)
            return
        if decision.next_batch is not None:
            self._loop.call_soon(self._resume)
            return
        self._decision = None
        end = self._quorum.end_offset
        self._changes.append(Change(end, [], decision.then, decision.response))
        self._hand_over()

    def _resume(self) -> None:
        if self._decision is not None:
            self._go_on()
        self._work()

    def _append(self, records: list[Message]) -> bool:
        level = self.controller.image.level
        if not self._quorum.propose(encode_records(records, level)):
            return False
        try:
            for record in records:
                self.controller.replay(record)
        except Exception as error:
            # The records are in the log, and the image does not have them.
            self.cannot_follow(error)
            raise
        self._changes.append(Change(self._quorum.end_offset, records))
        self._appended_at = self._clock().monotonic
        return True

    def _give_up(self, decision: "_Appending", code: ErrorCode) -> None:
        """A decision cannot be appended as a whole: none of it takes effect."""
        self._decision = None
        self._loop.call_soon(decision.then, code)
        if self.controller.image.is_in_transaction and self._quorum.leader_id is not None:
            # Nothing else is decided before this is in the log.
            abort: list[Message] = [AbortTransactionRecord(reason="The decision failed.")]
            self._decision = _Appending(iter(()), abort, None, _ignore)
            self._later(RETRY_SECONDS, self._resume)

    # What becomes of it.

    def committed(self, high_watermark: Offset) -> None:
        """Everything below stays: this broker acts on it."""
        self._high_watermark = high_watermark
        self._hand_over()

    def _hand_over(self) -> None:
        while self._changes and self._changes[0].end_offset <= self._high_watermark:
            self.apply(self._changes.popleft())

    def failed(self) -> None:
        """Nothing is decided any more, and what is not committed is never answered otherwise."""
        changes, self._changes = self._changes, deque()
        for change in changes:
            self._loop.call_soon(change.refuse, ErrorCode.NOT_CONTROLLER)
        if self._decision is not None:
            self._loop.call_soon(self._decision.then, ErrorCode.NOT_CONTROLLER)
            self._decision = None
        self._work()

    # Idling.

    def start_idling(self) -> None:
        """Write a record when nothing else was written for a while, so that a log that does not
        get on is told from one with nothing to say.
        """
        if self._idle_seconds:
            self._idle_timer = self._later(self._idle_seconds, self._idle)

    def _idle(self) -> None:
        idle_for = self._clock().monotonic - self._appended_at
        if idle_for >= self._idle_seconds and self._decision is None and not self._changes:
            with suppress(StorageFullError):
                self._append([NoOpRecord()])
            idle_for = 0.0
        left = max(self._idle_seconds - idle_for, 0.001)
        self._idle_timer = self._later(left, self._idle)

    def _later(self, seconds: float, do: Callable[[], None]) -> Timer:
        return self._environment.at(self._environment.monotonic() + seconds, do)

    def stop_idling(self) -> None:
        """Write no more of them."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()


@dataclass(slots=True)
class _Appending:
    """A decision on its way into the log."""

    batches: Iterator[list[Message]]
    next_batch: list[Message] | None
    response: Message | None
    then: ChangeDone


class _Sliced:
    """A large command on its way, one slice after the other; others come in between."""

    def __init__(self, host: ControllerHost, slices: CommandSlices, then: ChangeDone) -> None:
        self._host = host
        self._slices = slices
        self._then = then
        self._answers: list[Message] = []

    def go_on(self) -> None:
        command = next(self._slices.commands, None)
        if command is None:
            self._then(self._slices.join(self._answers))
        else:
            self._host.submit_whole(command, self._decided)

    def _decided(self, answer: Message | ErrorCode) -> None:
        if isinstance(answer, ErrorCode):
            self._then(answer)
            return
        self._answers.append(answer)
        self.go_on()


def _ignore(_: object) -> None:
    """Do nothing with an answer, or an error."""
