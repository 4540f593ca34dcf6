"""Connections and metadata that several clients of one loop use, and none of them closes."""

from moldau.client.cluster import Cluster


class SharedCluster(Cluster):
    """A cluster for clients that come and go: `Admin(cluster=shared)`.

    A client that closes leaves the connections open, for the next one; `hang_up` closes them. All
    of its clients have the settings of every client from it. A process that is forked off must make
    its own: both would read the answers of one connection.
    """

    async def start(self) -> None:
        """Find the cluster, unless a client has done so before."""
        if not self.nodes:
            await super().start()

    def release(self) -> None:
        """Stay as it is: one of several clients has come to its end."""
