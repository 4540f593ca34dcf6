// A worker on franz-go: copies a topic in transactions, with the offsets, until it is killed.
// copier SERVERS SOURCE TARGET NAME PROTOCOL
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	servers, source, target, name, protocol := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	ctx := context.Background()
	options := []kgo.Opt{
		kgo.SeedBrokers(servers),
		kgo.TransactionalID(name),
		kgo.TransactionTimeout(10 * time.Second),
		kgo.ConsumerGroup(source),
		kgo.ConsumeTopics(source),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.SessionTimeout(2 * time.Second),
		kgo.HeartbeatInterval(300 * time.Millisecond),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RequireStableFetchOffsets(),
	}
	if protocol == "consumer" {
		options = append(options, kgo.Balancers(kgo.RangeBalancer()), kgo.ServerSideBalancer())
	}
	session, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		log.Fatal(err)
	}
	for {
		fetches := session.PollRecords(ctx, 20)
		if fetches.Empty() {
			continue
		}
		if err := session.Begin(); err != nil {
			log.Fatal(err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			value := fmt.Sprintf("%d:%d", record.Partition, record.Offset)
			copied := &kgo.Record{Topic: target, Partition: record.Partition, Value: []byte(value)}
			session.Produce(ctx, copied, func(_ *kgo.Record, err error) {
				if err != nil {
					log.Println(err)
				}
			})
		})
		if _, err := session.End(ctx, kgo.TryCommit); err != nil {
			log.Fatal(err)
		}
	}
}
