"""The admin client, asynchronous and synchronous: topics, configs, offsets, groups, the cluster."""

from collections.abc import Mapping

from moldau.client.admin_cluster import ClusterAdmin
from moldau.client.admin_configs import ConfigAdmin
from moldau.client.admin_groups import GroupAdmin
from moldau.client.admin_shares import ShareAdmin
from moldau.client.admin_topics import TopicAdmin
from moldau.client.admin_transactions import TransactionAdmin
from moldau.client.shared_cluster import SharedCluster
from moldau.client.sync import Synchronous, waiting


class AsyncAdmin(TopicAdmin, ConfigAdmin, ClusterAdmin, TransactionAdmin, GroupAdmin, ShareAdmin):
    """Looks at a cluster and changes it.

        async with AsyncAdmin("localhost:9092") as admin:
            await admin.create_topic("clicks", partitions=3)
            print(await admin.list_topics())

    What asks about several things returns a dict with a result or a `KafkaError` for each; what
    asks for one raises.
    """


class Admin(Synchronous[AsyncAdmin]):
    """Looks at a cluster and changes it, waiting for each answer.

    with Admin("localhost:9092") as admin:
        admin.create_topic("clicks", partitions=3)
        print(admin.list_topics())
    """

    def __init__(
        self,
        servers: str | None = None,
        *,
        config: Mapping[str, object] | None = None,
        cluster: SharedCluster | None = None,
        **settings: object,
    ) -> None:
        super().__init__(AsyncAdmin(servers, config=config, cluster=cluster, **settings))

    list_topics = waiting(AsyncAdmin.list_topics)
    describe_topics = waiting(AsyncAdmin.describe_topics)
    eligible_leaders = waiting(AsyncAdmin.eligible_leaders)
    create_topic = waiting(AsyncAdmin.create_topic)
    create_partitions = waiting(AsyncAdmin.create_partitions)
    delete_topics = waiting(AsyncAdmin.delete_topics)
    list_config_resources = waiting(AsyncAdmin.list_config_resources)
    describe_configs = waiting(AsyncAdmin.describe_configs)
    alter_configs = waiting(AsyncAdmin.alter_configs)
    list_offsets = waiting(AsyncAdmin.list_offsets)
    delete_records = waiting(AsyncAdmin.delete_records)
    describe_producers = waiting(AsyncAdmin.describe_producers)
    describe_cluster = waiting(AsyncAdmin.describe_cluster)
    describe_log_dirs = waiting(AsyncAdmin.describe_log_dirs)
    describe_features = waiting(AsyncAdmin.describe_features)
    list_groups = waiting(AsyncAdmin.list_groups)
    describe_groups = waiting(AsyncAdmin.describe_groups)
    delete_groups = waiting(AsyncAdmin.delete_groups)
    list_group_offsets = waiting(AsyncAdmin.list_group_offsets)
    alter_group_offsets = waiting(AsyncAdmin.alter_group_offsets)
    delete_group_offsets = waiting(AsyncAdmin.delete_group_offsets)
    remove_members = waiting(AsyncAdmin.remove_members)
    list_transactions = waiting(AsyncAdmin.list_transactions)
    describe_transactions = waiting(AsyncAdmin.describe_transactions)
    fence_producers = waiting(AsyncAdmin.fence_producers)
    end_transactions = waiting(AsyncAdmin.end_transactions)
    abort_transaction = waiting(AsyncAdmin.abort_transaction)
    find_hanging_transactions = waiting(AsyncAdmin.find_hanging_transactions)
    describe_share_groups = waiting(AsyncAdmin.describe_share_groups)
    list_share_group_offsets = waiting(AsyncAdmin.list_share_group_offsets)
    alter_share_group_offsets = waiting(AsyncAdmin.alter_share_group_offsets)
    delete_share_group_offsets = waiting(AsyncAdmin.delete_share_group_offsets)
