"""Producer, consumer and admin client: they speak the wire, to Moldau and to Apache Kafka."""
