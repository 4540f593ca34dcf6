"""What handlers work with."""

from moldau.broker.ports import ControllerPort, Environment
from moldau.metadata.image import ClusterImage
from moldau.metadata.settings.broker import BrokerSettings
from moldau.metadata.settings.effective import BrokerLayers


class Broker:
    """One broker: what it knows, has and can ask for."""

    def __init__(
        self,
        node_id: int,
        cluster_id: str,
        layers: BrokerLayers,
        settings: BrokerSettings,
        image: ClusterImage,
        controller: ControllerPort,
        environment: Environment,
    ) -> None:
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.layers = layers
        """The settings by where they come from; the shell replaces them when they change."""
        self.settings = settings
        """What the layers add up to."""
        self.image = image
        """The cluster as far as it is committed and this broker has acted on it."""
        self.metadata_offset = -1
        """The last offset of the metadata log that the image has."""
        self.controller = controller
        self.environment = environment
