"""Requests about very many things, decided in slices so that no turn of the loop takes long."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from moldau.controller.commands import AlterConfigs, CreateTopics, IncrementalAlterConfigs
from moldau.controller.create_topics import in_slices
from moldau.coordination.command import Command
from moldau.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResponse
from moldau.protocol.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from moldau.protocol.messages.incremental_alter_configs import (
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

AT_ONCE_MAX = 25


class CommandSlices(NamedTuple):
    """What one large command is cut into."""

    commands: Iterator[Command[Any]]
    join: Callable[[list[Any]], Any]
    """Makes one answer of those to the commands."""


def slices_of(command: Command[Any]) -> CommandSlices | None:
    """Cut a command that is about many things which do not depend on each other.

    None: it is small enough, or cannot be cut.
    """
    match command:
        case CreateTopics(request=request) if len(request.topics) > AT_ONCE_MAX:
            return CommandSlices(in_slices(command, AT_ONCE_MAX), partial(_join_created, request))
        case AlterConfigs(request=request) if len(request.resources) > AT_ONCE_MAX:
            return CommandSlices(_slices_of_put(request), _join_put)
        case IncrementalAlterConfigs(request=request) if len(request.resources) > AT_ONCE_MAX:
            return CommandSlices(_slices_of_changes(request), _join_changes)
        case _:
            return None


def _join_created(
    request: CreateTopicsRequest, answers: list[CreateTopicsResponse]
) -> CreateTopicsResponse:
    order = {topic.name: number for number, topic in enumerate(request.topics)}
    results = [result for answer in answers for result in answer.topics]
    return CreateTopicsResponse(topics=sorted(results, key=lambda result: order[result.name]))


# The broker has refused resources that are named twice, so each stands by itself.


def _slices_of_put(request: AlterConfigsRequest) -> Iterator[AlterConfigs]:
    for start in range(0, len(request.resources), AT_ONCE_MAX):
        some = request.resources[start : start + AT_ONCE_MAX]
        yield AlterConfigs(AlterConfigsRequest(resources=some, validate_only=request.validate_only))


def _join_put(answers: list[AlterConfigsResponse]) -> AlterConfigsResponse:
    return AlterConfigsResponse(responses=[each for answer in answers for each in answer.responses])


def _slices_of_changes(
    request: IncrementalAlterConfigsRequest,
) -> Iterator[IncrementalAlterConfigs]:
    for start in range(0, len(request.resources), AT_ONCE_MAX):
        some = request.resources[start : start + AT_ONCE_MAX]
        yield IncrementalAlterConfigs(
            IncrementalAlterConfigsRequest(resources=some, validate_only=request.validate_only)
        )


def _join_changes(
    answers: list[IncrementalAlterConfigsResponse],
) -> IncrementalAlterConfigsResponse:
    return IncrementalAlterConfigsResponse(
        responses=[each for answer in answers for each in answer.responses]
    )
