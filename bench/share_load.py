"""`python -m bench.share_load SERVERS TOPIC COUNT`: share consumers, as a process of their own.

COUNT consumers of one share group, named like the topic, read and acknowledge (implicitly, by the
next poll) until standard input ends. Each line there is answered with the records received so far.
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from confluent_kafka import ShareConsumer

POLL_SECONDS = 0.5


def main() -> None:
    """Read until standard input ends."""
    servers, topic, count = sys.argv[1:]
    received = [0] * int(count)
    is_over = Event()

    def consume(number: int) -> None:
        # Without the warning that the share consumer is a preview.
        settings = {"bootstrap.servers": servers, "group.id": topic, "log_level": 3}
        consumer = ShareConsumer(settings)
        consumer.subscribe([topic])
        while not is_over.is_set():
            for message in consumer.poll(POLL_SECONDS) or ():
                if message.error() is not None:
                    raise SystemExit(str(message.error()))
                received[number] += 1
        consumer.close()

    with ThreadPoolExecutor(len(received)) as pool:
        reading = [pool.submit(consume, number) for number in range(len(received))]
        for _ in sys.stdin:
            for each in reading:
                if each.done():
                    each.result()  # raises what ended it
            print(sum(received), flush=True)
        is_over.set()


if __name__ == "__main__":
    main()
