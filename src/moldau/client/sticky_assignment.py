"""The sticky assignors: everyone keeps what they have, as far as all have about as much."""

from collections.abc import Iterable, Mapping, Sequence

from moldau.client.member_metadata import NO_GENERATION, Subscription, decode_sticky
from moldau.client.subscribers import Assignments, Subscriber
from moldau.kernel.ids import TopicPartition

Owners = dict[TopicPartition, str]


def assign_sticky(counts: Mapping[str, int], members: Sequence[Subscriber]) -> Assignments:
    """Share out for members that have given everything up, and remember what they had."""
    had = {each.member_id: decode_sticky(each.subscription.user_data) for each in members}
    return _share_out(counts, members, had)


def assign_sticky_cooperatively(
    counts: Mapping[str, int], members: Sequence[Subscriber]
) -> Assignments:
    """Share out for members that read on: what moves has no reader until its old one gave it up.

    Those join again when they have, and then it gets its new reader.
    """
    had = {
        each.member_id: (tuple(each.subscription.owned), _generation_of(each.subscription))
        for each in members
    }
    assignments = _share_out(counts, members, had)
    holders: dict[TopicPartition, set[str]] = {}
    for member_id, (owned, _) in had.items():
        for key in owned:
            holders.setdefault(key, set()).add(member_id)
    for member_id, partitions in assignments.items():
        partitions[:] = [key for key in partitions if member_id in holders.get(key, {member_id})]
    return assignments


def generation_data(generation: int) -> bytes:
    """Return the generation as members that know no better place for it send it."""
    return generation.to_bytes(4, signed=True)


def _generation_of(subscription: Subscription) -> int:
    data = subscription.user_data
    if subscription.generation == NO_GENERATION and data is not None and len(data) >= 4:
        return int.from_bytes(data[:4], signed=True)
    return subscription.generation


def _share_out(
    counts: Mapping[str, int],
    members: Sequence[Subscriber],
    had: Mapping[str, tuple[Sequence[TopicPartition], int]],
) -> Assignments:
    wanted = {each.member_id: frozenset(each.subscription.topics) for each in members}
    readers = {
        topic: sorted(member_id for member_id, topics in wanted.items() if topic in topics)
        for topic in counts
    }
    owners = _keep(counts, wanted, had)
    loads = dict.fromkeys(sorted(wanted), 0)
    for owner in owners.values():
        loads[owner] += 1
    free = [
        key
        for topic, count in counts.items()
        if readers[topic]
        for key in (TopicPartition(topic, number) for number in range(count))
        if key not in owners
    ]
    # Those that few may read come first: others can still go elsewhere.
    for key in sorted(free, key=lambda key: (len(readers[key.topic]), key)):
        owner = min(readers[key.topic], key=lambda member_id: (loads[member_id], member_id))
        owners[key] = owner
        loads[owner] += 1
    _balance(owners, loads, readers)
    assignments: Assignments = {member_id: [] for member_id in wanted}
    for key in sorted(owners):
        assignments[owners[key]].append(key)
    return assignments


def _keep(
    counts: Mapping[str, int],
    wanted: Mapping[str, frozenset[str]],
    had: Mapping[str, tuple[Sequence[TopicPartition], int]],
) -> Owners:
    """Return who keeps what: of two who claim a partition the one of the newer generation."""
    claims: dict[TopicPartition, tuple[int, str | None]] = {}
    for member_id, (owned, generation) in sorted(had.items()):
        for key in owned:
            if key.topic not in wanted[member_id] or key.partition >= counts.get(key.topic, 0):
                continue
            newest, _ = claims.get(key, (generation - 1, None))
            if generation > newest:
                claims[key] = generation, member_id
            elif generation == newest:
                claims[key] = generation, None  # one of them is wrong, and nobody knows which
    return {key: owner for key, (_, owner) in claims.items() if owner is not None}


def _balance(owners: Owners, loads: dict[str, int], readers: Mapping[str, Sequence[str]]) -> None:
    """Move partitions from who has most to who has least, as long as that makes it more even."""
    held: dict[str, set[TopicPartition]] = {member_id: set() for member_id in loads}
    for key, owner in owners.items():
        held[owner].add(key)
    while True:
        for member_id in sorted(loads, key=lambda each: (-loads[each], each)):
            move = _best_move(held[member_id], loads, readers, loads[member_id])
            if move is not None:
                break
        else:
            return
        key, target = move
        held[member_id].discard(key)
        held[target].add(key)
        owners[key] = target
        loads[member_id] -= 1
        loads[target] += 1


def _best_move(
    held: Iterable[TopicPartition],
    loads: Mapping[str, int],
    readers: Mapping[str, Sequence[str]],
    load: int,
) -> tuple[TopicPartition, str] | None:
    by_topic: dict[str, TopicPartition] = {}
    for key in held:
        by_topic[key.topic] = max(key, by_topic.get(key.topic, key))
    best: tuple[int, TopicPartition, str] | None = None
    for topic, key in sorted(by_topic.items()):
        target = min(readers[topic], key=lambda member_id: (loads[member_id], member_id))
        if loads[target] + 1 < load and (best is None or loads[target] < best[0]):
            best = loads[target], key, target
    return None if best is None else (best[1], best[2])
