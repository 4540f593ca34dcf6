"""The Python source of declarations: which message in which file, and how it is written."""

import re
from collections.abc import Iterable, Sequence

from tools.schema_json import FieldSpec, MessageSpec, StructSpec, Versions, span, structs

NOTE = "# Derived from Kafka's message schemas by tools/generate_messages.py: change it there."

TYPES = {
    "bool": ("boolean", "bool"),
    "int8": ("int8", "int"),
    "int16": ("int16", "int"),
    "uint16": ("uint16", "int"),
    "int32": ("int32", "int"),
    "uint32": ("uint32", "int"),
    "int64": ("int64", "int"),
    "float64": ("float64", "float"),
    "uuid": ("uuid", "Uuid"),
    "string": ("string", "str"),
    "bytes": ("blob", "bytes"),
    "records": ("records", "Buffer"),
}
"""Kafka's type: ours, and its annotation."""


def _keys_and_values(*names: str) -> list[str]:
    return [name + part for name in names for part in ("Key", "Value")]


def _group_records(kind: str, *more: str) -> list[str]:
    parts = ("Metadata", "MemberMetadata", "TargetAssignmentMetadata", "TargetAssignmentMember")
    names = (*parts, "CurrentMemberAssignment", *more)
    return _keys_and_values(*(f"{kind}Group{name}" for name in names))


FILES = {
    "messages/headers": ("Request and response headers", ["RequestHeader", "ResponseHeader"]),
    "messages/consumer_protocol": (
        "What classic consumers say to each other inside JoinGroup and SyncGroup",
        ["ConsumerProtocolSubscription", "ConsumerProtocolAssignment"],
    ),
    "messages/principal": ("A principal inside an Envelope", ["DefaultPrincipalData"]),
    "stored/offsets": (
        "Records of classic groups and committed offsets in __consumer_offsets",
        _keys_and_values("LegacyOffsetCommit", "OffsetCommit", "GroupMetadata"),
    ),
    "stored/consumer_groups": (
        "Records of consumer groups in __consumer_offsets",
        _group_records("Consumer", "PartitionMetadata", "RegularExpression"),
    ),
    "stored/share_groups": (
        "Records of share groups in __consumer_offsets",
        _group_records("Share", "StatePartitionMetadata"),
    ),
    "stored/streams_groups": (
        "Records of streams groups in __consumer_offsets",
        _group_records("Streams", "Topology"),
    ),
    "stored/transaction_state": (
        "Records in __transaction_state",
        _keys_and_values("TransactionLog"),
    ),
    "stored/share_group_state": (
        "Records in __share_group_state",
        _keys_and_values("ShareSnapshot", "ShareUpdate"),
    ),
    "stored/cluster_metadata": (
        "Records in __cluster_metadata",
        [
            *("RegisterBrokerRecord", "UnregisterBrokerRecord", "TopicRecord", "PartitionRecord"),
            *("ConfigRecord", "PartitionChangeRecord", "FenceBrokerRecord", "UnfenceBrokerRecord"),
            *("RemoveTopicRecord", "DelegationTokenRecord", "UserScramCredentialRecord"),
            *("FeatureLevelRecord", "ClientQuotaRecord", "ProducerIdsRecord"),
            *("BrokerRegistrationChangeRecord", "AccessControlEntryRecord"),
            *("RemoveAccessControlEntryRecord", "NoOpRecord", "ZkMigrationStateRecord"),
            *("RemoveUserScramCredentialRecord", "BeginTransactionRecord", "EndTransactionRecord"),
            *("AbortTransactionRecord", "RemoveDelegationTokenRecord", "RegisterControllerRecord"),
            "ClearElrRecord",
        ],
    ),
    "stored/control_records": (
        "Keys and values of control records",
        [
            *("ControlRecordTypeSchema", "EndTxnMarker", "LeaderChangeMessage", "VotersRecord"),
            *("SnapshotHeaderRecord", "SnapshotFooterRecord", "KRaftVersionRecord"),
        ],
    ),
    "stored/quorum_state": ("The quorum-state file of a KRaft node", ["QuorumStateData"]),
    "stored/producer_snapshot": ("A partition's producer snapshot file", ["ProducerSnapshot"]),
    "stored/transaction_index": ("An entry of a segment's transaction index", ["AbortedTxn"]),
    "stored/remote_log_metadata": (
        "Records in __remote_log_metadata",
        [
            *("RemoteLogSegmentMetadataRecord", "RemoteLogSegmentMetadataUpdateRecord"),
            *("RemotePartitionDeleteMetadataRecord", "RemoteLogSegmentMetadataSnapshotRecord"),
        ],
    ),
}
"""The files that are not one API: module under moldau.protocol, what it holds, which messages."""


def snake_case(name: str) -> str:
    """Turn Kafka's CamelCase into snake_case; KRaft is one word."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name.replace("KRaft", "Kraft")).lower()


def module_source(title: str, messages: Sequence[MessageSpec]) -> str:
    """Return the source of a module that declares `messages`; `title` opens its docstring."""
    names = _struct_names(messages)
    written: set[str] = set()
    classes = []
    for message in messages:
        for struct in structs(message.body):
            name = names[message.name, struct.name]
            if name not in written:
                written.add(name)
                header = f"class {name}(Struct):"
                classes.append(_class_source(header, struct, message.name, names))
        classes.append(_class_source(_message_header(message), message.body, message.name, names))
    body = "\n\n\n".join(classes)
    used = sorted(
        word
        for word in {"Array", "Buffer", "Message", "Struct", "Uuid", "field", "legacy_string"}
        | {ours for ours, _ in TYPES.values()}
        if re.search(rf"[\[(: ]{word}\b(?!:)", body)
    )
    sequence = "from collections.abc import Sequence\n\n" if "Sequence[" in body else ""
    imports = f"{sequence}from moldau.protocol.schema import {', '.join(used)}"
    return f'"""{_docstring(title, messages)}"""\n\n{NOTE}\n\n{imports}\n\n{body}\n'


def api_table(messages: dict[str, MessageSpec]) -> str:
    """Return the source of the module with one line of facts per API."""
    rows = []
    requests = [message for message in messages.values() if message.kind == "request"]
    for request in sorted(requests, key=lambda message: message.api_key or 0):
        api = request.name.removesuffix("Request")
        response = messages[f"{api}Response"]
        facts = (request.api_key, request.body.present, request.flexible)
        assert facts == (response.api_key, response.body.present, response.flexible), api
        stable = request.last - request.is_last_unstable
        versions = f"{request.first}, {request.last}, {stable}"
        listeners = "".join(f"{listener.upper()}," for listener in request.listeners)
        listeners = listeners[:-1] if len(request.listeners) > 1 else listeners
        flexible = "NEVER" if request.flexible is None else request.flexible
        names = f'"{api}", "{snake_case(api)}"'
        rows.append(f"({request.api_key}, {names}, {versions}, {flexible}, ({listeners})),")
    return "\n".join(
        [
            '"""The facts of every API: one row per key, read by moldau.protocol.apis."""',
            "",
            NOTE,
            "",
            "from typing import Final",
            "",
            "from moldau.protocol.schema import NEVER",
            "",
            'BROKER: Final = "broker"',
            'CONTROLLER: Final = "controller"',
            "",
            "# key, name, module; first, last, last stable and first flexible version; listeners",
            "ROWS: Final = (",
            *(f"    {row}" for row in rows),
            ")",
            "",
        ]
    )


def _docstring(title: str, messages: Sequence[MessageSpec]) -> str:
    """Say in one sentence what the module has: of an API its key and versions."""
    request = messages[0]
    if request.kind != "request":
        return f"{title}."
    facts = [f"{title}, API key {request.api_key}: {_version_range(request.body.present)}"]
    if request.flexible is not None:
        is_always = request.flexible <= request.first
        facts.append("flexible" if is_always else f"flexible from v{request.flexible}")
    if request.legacy:
        facts.append(f"{_version_range(request.legacy)} as in Kafka 3.9")
    if request.is_last_unstable:
        facts.append(f"v{request.last} unstable")
    return f"{', '.join(facts)}."


def _version_range(versions: Versions) -> str:
    first, last = span(versions)
    return f"v{first}" if first == last else f"v{first}-v{last}"


def _struct_names(messages: Iterable[MessageSpec]) -> dict[tuple[str, str], str]:
    """Name the structs: Kafka's name, with the message's in front where two would clash."""
    definitions: dict[str, list[StructSpec]] = {}
    uses = [(message, struct) for message in messages for struct in structs(message.body)]
    for _, struct in uses:
        definitions.setdefault(struct.name, []).append(struct)
    return {
        (message.name, struct.name): struct.name
        if all(other == struct for other in definitions[struct.name])
        else f"{message.name}{struct.name}"
        for message, struct in uses
    }


def _message_header(message: MessageSpec) -> str:
    facts = [f"versions=({message.first}, {message.last})"]
    if message.api_key is not None:
        facts.insert(0, f"api_key={message.api_key}")
    if message.flexible is not None:
        facts.append(f"flexible={message.flexible}")
    return f"class {message.name}(Message, {', '.join(facts)}):"


def _class_source(
    header: str, struct: StructSpec, message: str, names: dict[tuple[str, str], str]
) -> str:
    lines = [_field_source(spec, struct.present, message, names) for spec in struct.fields]
    return "\n".join([header, *(f"    {line}" for line in lines or ["pass"])])


def _field_source(
    spec: FieldSpec, parent: Versions, message: str, names: dict[tuple[str, str], str]
) -> str:
    if spec.struct:
        ours = annotation = names[message, spec.struct.name]
    else:
        ours, annotation = TYPES[spec.type]
    if spec.never_flexible:
        ours = f"legacy_{ours}"
    if spec.is_array:
        ours, annotation = f"Array({ours})", f"Sequence[{annotation}]"
    if spec.nullable:
        annotation += " | None"
    arguments = ", ".join([ours, *_keywords(spec, parent)])
    return f"{snake_case(spec.name)}: {annotation} = field({arguments})"


def _keywords(spec: FieldSpec, parent: Versions) -> Iterable[str]:
    """Yield the keyword arguments of `field`, as far as they differ from what it assumes."""
    since, until = span(spec.present)
    first, last = span(parent)
    if since > first:
        yield f"since={since}"
    if until < last:
        yield f"until={until}"
    if spec.nullable:
        nullable, end = span(spec.nullable)
        assert end == until, spec.name
        yield f"nullable={nullable if nullable > first else 0}"
    if spec.tag is not None:
        yield f"tag={spec.tag}"
    if (default := _default(spec)) is not None:
        yield f"default={default}"
    if spec.ignorable and spec.present != parent:
        yield "ignorable=True"


def _default(spec: FieldSpec) -> str | None:
    if spec.type == "records" and not spec.nullable:
        return 'b""'  # Kafka's is null, which it then refuses to write
    match spec.default:
        case None | "false" | "0":
            return None
        case "null":
            assert spec.nullable, spec.name
            return "None" if spec.type != "records" else None
        case "true":
            return "True"
        case number if spec.type.startswith(("int", "uint", "float")):
            return f"0x{number[2:].upper()}" if number.startswith("0x") else number
        case other:
            raise AssertionError(f"{spec.name}: default {other}")
