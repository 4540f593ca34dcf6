// kafkajs, told what to do line by line; see clients/programs.py.

const readline = require("node:readline");
const { CompressionTypes, CompressionCodecs, Kafka, logLevel } = require("kafkajs");

// kafkajs brings gzip only; its users plug the others in.
const unread = () => Promise.reject(new Error("nothing is consumed here"));
CompressionCodecs[CompressionTypes.Snappy] = require("kafkajs-snappy");
CompressionCodecs[CompressionTypes.LZ4] = () => ({
  compress: async (encoder) => require("lz4-napi").compressFrame(encoder.buffer),
  decompress: unread,
});
CompressionCodecs[CompressionTypes.ZSTD] = () => ({
  compress: (encoder) =>
    new Promise((resolve) =>
      require("zstd-codec").ZstdCodec.run((zstd) =>
        resolve(Buffer.from(new zstd.Simple().compress(encoder.buffer))),
      ),
    ),
  decompress: unread,
});
const CODECS = { none: "None", gzip: "GZIP", snappy: "Snappy", lz4: "LZ4", zstd: "ZSTD" };
const ACKS = { 0: 0, 1: 1, all: -1, idempotent: -1 };
const TOPIC = 2; // the type of a config's resource

const kafka = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING });
const admin = kafka.admin();

async function produce(topic, partition, codec, acks, rows) {
  const producer = kafka.producer({ idempotent: acks === "idempotent" });
  await producer.connect();
  await producer.send({
    topic,
    acks: ACKS[acks],
    compression: CompressionTypes[CODECS[codec]],
    messages: rows.map((row) => {
      const [timestamp, key, value] = row.split("\t");
      return { timestamp, key: key === "-" ? null : key, value, partition: Number(partition) };
    }),
  });
  await producer.disconnect();
}

async function findOffset(topic, partition, timestamp) {
  const ofPartition = (ends) => ends.find((end) => end.partition === Number(partition));
  const { low, high } = ofPartition(await admin.fetchTopicOffsets(topic));
  if (Number(timestamp) < 0) return timestamp === "-2" ? low : high;
  const found = ofPartition(await admin.fetchTopicOffsetsByTimestamp(topic, Number(timestamp)));
  // Where nothing is that late it answers with the end.
  return found.offset === high ? -1 : found.offset;
}

// Two members read everything; they read on until both have something to do.
async function readAsGroup(topic, group, count) {
  const read = [];
  const owned = [0, 0];
  const members = [0, 1].map(() => kafka.consumer({ groupId: group, heartbeatInterval: 300 }));
  for (const [number, member] of members.entries()) {
    member.on(member.events.GROUP_JOIN, ({ payload }) => {
      owned[number] = (payload.memberAssignment[topic] ?? []).length;
    });
    await member.connect();
    await member.subscribe({ topic, fromBeginning: true });
    await member.run({
      autoCommitThreshold: 1,
      eachMessage: async ({ partition, message }) => read.push(`${partition}:${message.offset}`),
    });
  }
  const isDone = () => new Set(read).size >= Number(count) && owned.every((size) => size > 0);
  while (!isDone()) await new Promise((resolve) => setTimeout(resolve, 50));
  for (const member of members) await member.disconnect();
  return [...new Set(read)];
}

async function transact(topic, count) {
  const producer = kafka.producer({ transactionalId: topic, maxInFlightRequests: 1, idempotent: true });
  await producer.connect();
  for (let number = 0; number < Number(count); number++) {
    const transaction = await producer.transaction();
    await transaction.send({ topic, messages: [{ value: `${number}`, partition: 0 }] });
    const offsets = [{ partition: 0, offset: `${number}` }];
    await transaction.sendOffsets({ consumerGroupId: topic, topics: [{ topic, partitions: offsets }] });
    await (number % 3 === 1 ? transaction.abort() : transaction.commit());
  }
  await producer.disconnect();
}

async function answer([command, topic, ...words], rows) {
  switch (command) {
    case "produce":
      await produce(topic, ...words.slice(0, 3), rows);
      return [];
    case "group":
      return readAsGroup(topic, ...words);
    case "transact":
      await transact(topic, ...words);
      return [];
    case "offset":
      return [await findOffset(topic, ...words)];
    case "list":
      return admin.listTopics();
    case "create": {
      const configEntries = words.slice(1).map((word) => {
        const [name, value] = word.split("=");
        return { name, value };
      });
      const wanted = { topic, numPartitions: Number(words[0]), replicationFactor: 1, configEntries };
      // It answers false, and no more, when the topic exists.
      if (!(await admin.createTopics({ topics: [wanted] }))) throw new Error("already exists");
      return [];
    }
    case "count": {
      const { topics } = await admin.fetchTopicMetadata({ topics: [topic] });
      const { partitions } = topics[0];
      if (partitions.some(({ leader }) => leader < 0)) throw new Error("no leader");
      return [partitions.length];
    }
    case "config": {
      const resources = [{ type: TOPIC, name: topic, configNames: [words[0]] }];
      const described = await admin.describeConfigs({ resources });
      return [described.resources[0].configEntries[0].configValue];
    }
    case "set": {
      const configEntries = [{ name: words[0], value: words[1] }];
      await admin.alterConfigs({ resources: [{ type: TOPIC, name: topic, configEntries }] });
      return [];
    }
    case "grow":
      await admin.createPartitions({ topicPartitions: [{ topic, count: Number(words[0]) }] });
      return [];
    case "delete":
      await admin.deleteTopics({ topics: [topic] });
      return [];
    default:
      throw new Error(command);
  }
}

async function main() {
  await admin.connect();
  const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
  for (let line = await lines.next(); !line.done; line = await lines.next()) {
    const words = line.value.split("\t");
    const rows = [];
    if (words[0] === "produce")
      while (rows.length < Number(words[5])) rows.push((await lines.next()).value);
    try {
      const said = await answer(words, rows);
      process.stdout.write([...said, ".", ""].join("\n"));
    } catch (error) {
      process.stdout.write(`! ${String(error).replaceAll("\n", " ")}\n`);
    }
  }
  await admin.disconnect();
}

main();
