"""A process with one view, which says how fast it was filled and asked, and how large it became.

python -m bench.view_reader SERVERS TOPIC FOLDER KEY_COUNT
"""

import json
import random
import resource
import sys
import time
from pathlib import Path

from moldau.pipelines.views.view import View

QUESTIONS = 20_000
DEADLINE_SECONDS = 600


def key_of(number: int) -> str:
    """Return a key; those of neighbouring numbers are far apart."""
    return f"user-{number * 2_654_435_761 % 2**32:010}"


def main(servers: str, topic: str, folder: str, key_count: int) -> None:
    """Fill the view, ask it, and print what was seen."""
    chance = random.Random(7)
    begun, cpu = time.perf_counter(), time.process_time()
    config = {"bootstrap.servers": servers}
    with View(topic, {"user": "string"}, Path(folder), config) as view:
        if not view.wait_until_caught_up(DEADLINE_SECONDS):
            sys.exit(f"the view has not caught up: {view.progress}")
        seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
        times_ms = []
        for _ in range(QUESTIONS):
            key = key_of(chance.randrange(key_count))
            asked = time.perf_counter()
            answer = view.get(key)
            times_ms.append((time.perf_counter() - asked) * 1000)
            assert answer.row is not None, key
            assert answer.caught_up
    times_ms.sort()
    seen = {
        "load_records_per_second": key_count / seconds,
        "load_records_per_cpu_second": key_count / cpu,
        "p50_ms": times_ms[QUESTIONS // 2],
        "p99_ms": times_ms[QUESTIONS * 99 // 100],
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(seen))


if __name__ == "__main__":
    _, servers, topic, folder, key_count = sys.argv
    main(servers, topic, folder, int(key_count))
