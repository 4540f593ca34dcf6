// franz-go, told what to do line by line; see clients/programs.py.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

var (
	servers string
	wait    time.Duration
	admin   *kadm.Client
	in      = bufio.NewScanner(os.Stdin)
	out     = bufio.NewWriter(os.Stdout)
	codecs  = map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
)

func main() {
	servers = os.Args[1]
	wait = time.Duration(number(os.Args[2])) * time.Millisecond
	client, err := kgo.NewClient(kgo.SeedBrokers(servers), kgo.MetadataMinAge(100*time.Millisecond))
	if err != nil {
		panic(err)
	}
	admin = kadm.NewClient(client)
	for in.Scan() {
		if err := answer(strings.Split(in.Text(), "\t")); err != nil {
			fmt.Fprintln(out, "!", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Fprintln(out, ".")
		}
		out.Flush()
	}
}

func answer(words []string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	switch command, words := words[0], words[1:]; command {
	case "produce":
		return produce(ctx, words[0], int32(number(words[1])), words[2], words[3], int(number(words[4])))
	case "consume":
		return consume(ctx, words[0], int32(number(words[1])), number(words[2]), int(number(words[3])))
	case "group":
		return readAsGroup(ctx, words[0], words[1], int(number(words[2])), kgo.ConsumerGroup(words[1]))
	case "new-group":
		return readAsGroup(ctx, words[0], words[1], int(number(words[2])), kgo.ConsumerGroup(words[1]),
			kgo.Balancers(kgo.RangeBalancer()), kgo.ServerSideBalancer())
	case "transact":
		return transact(ctx, words[0], int(number(words[1])))
	case "share":
		return share(ctx, words[0], words[1], int(number(words[2])))
	case "offset":
		return offset(ctx, words[0], int32(number(words[1])), number(words[2]))
	case "list":
		topics, err := admin.ListTopics(ctx)
		for _, name := range topics.Names() {
			fmt.Fprintln(out, name)
		}
		return err
	case "create":
		configs := map[string]*string{}
		for _, setting := range words[2:] {
			name, value, _ := strings.Cut(setting, "=")
			configs[name] = &value
		}
		_, err := admin.CreateTopic(ctx, int32(number(words[1])), 1, configs, words[0])
		return err
	case "count":
		return count(ctx, words[0])
	case "config":
		return config(ctx, words[0], words[1])
	case "set":
		change := kadm.AlterConfig{Op: kadm.SetConfig, Name: words[1], Value: &words[2]}
		answers, err := admin.AlterTopicConfigs(ctx, []kadm.AlterConfig{change}, words[0])
		if err == nil {
			err = answers[0].Err
		}
		return err
	case "grow":
		answers, err := admin.UpdatePartitions(ctx, int(number(words[1])), words[0])
		if err == nil {
			err = answers.Error()
		}
		return err
	case "delete":
		_, err := admin.DeleteTopic(ctx, words[0])
		return err
	default:
		return errors.New(command)
	}
}

func produce(ctx context.Context, topic string, partition int32, codec, acks string, count int) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(servers), kgo.ProducerBatchCompression(codecs[codec]),
		kgo.ProducerLinger(50 * time.Millisecond), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	}
	switch acks {
	case "0":
		options = append(options, kgo.RequiredAcks(kgo.NoAck()), kgo.DisableIdempotentWrite())
	case "1":
		options = append(options, kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite())
	case "all":
		options = append(options, kgo.RequiredAcks(kgo.AllISRAcks()), kgo.DisableIdempotentWrite())
	}
	var records []*kgo.Record
	for ; count > 0 && in.Scan(); count-- {
		row := strings.Split(in.Text(), "\t")
		record := &kgo.Record{
			Topic: topic, Partition: partition, Timestamp: time.UnixMilli(number(row[0])), Value: []byte(row[2]),
		}
		if row[1] != "-" {
			record.Key = []byte(row[1])
		}
		records = append(records, record)
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ProduceSync(ctx, records...).FirstErr()
}

func consume(ctx context.Context, topic string, partition int32, offset int64, count int) error {
	from := map[int32]kgo.Offset{partition: kgo.NewOffset().At(offset)}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(servers), kgo.FetchMaxWait(wait),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: from}),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	for count > 0 {
		fetches := client.PollRecords(ctx, count)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			key := "-"
			if record.Key != nil {
				key = string(record.Key)
			}
			fmt.Fprintf(out, "%d\t%s\t%s\n", record.Timestamp.UnixMilli(), key, record.Value)
			count--
		}
	}
	return nil
}

func offset(ctx context.Context, topic string, partition int32, timestamp int64) error {
	var found kadm.ListedOffsets
	var err error
	switch timestamp {
	case -2:
		found, err = admin.ListStartOffsets(ctx, topic)
	case -1:
		found, err = admin.ListEndOffsets(ctx, topic)
	default:
		found, err = admin.ListOffsetsAfterMilli(ctx, timestamp, topic)
	}
	if err != nil {
		return err
	}
	at, _ := found.Lookup(topic, partition)
	// Where nothing is that late it answers with the end, and no timestamp.
	if timestamp >= 0 && at.Timestamp == -1 {
		at.Offset = -1
	}
	fmt.Fprintln(out, at.Offset)
	return at.Err
}

func count(ctx context.Context, topic string) error {
	topics, err := admin.ListTopics(ctx, topic)
	if err != nil {
		return err
	}
	for _, partition := range topics[topic].Partitions {
		if partition.Leader < 0 {
			return errors.New("a partition without a leader")
		}
	}
	fmt.Fprintln(out, len(topics[topic].Partitions))
	return topics[topic].Err
}

func config(ctx context.Context, topic, name string) error {
	described, err := admin.DescribeTopicConfigs(ctx, topic)
	if err != nil {
		return err
	}
	for _, one := range described[0].Configs {
		if one.Key == name {
			fmt.Fprintln(out, one.MaybeValue())
		}
	}
	return described[0].Err
}

func number(word string) int64 {
	value, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		panic(err)
	}
	return value
}
