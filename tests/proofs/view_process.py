"""A process that follows a topic into a view until it is killed; it says when it begins.

python -m tests.proofs.view_process SERVERS TOPIC FOLDER
"""

import signal
import sys
from pathlib import Path

from moldau.pipelines.views.view import View


def main(servers: str, topic: str, folder: str) -> None:
    with View(topic, {"id": "string"}, Path(folder), {"bootstrap.servers": servers}):
        sys.stdout.write("following\n")
        sys.stdout.flush()
        signal.pause()


if __name__ == "__main__":
    main(*sys.argv[1:])
