"""What handlers work with."""

from dataclasses import dataclass, field

from moldau.broker.client_telemetry import ClientTelemetry
from moldau.broker.deadlines import Deadlines
from moldau.broker.ports import (
    ControllerPort,
    DirectoriesPort,
    Environment,
    LoggersPort,
    LogsPort,
)
