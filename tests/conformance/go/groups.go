// What franz-go does as a member of groups, and in transactions.
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// readAsGroup lets two members read everything, and read on until both have something to do.
func readAsGroup(ctx context.Context, topic, group string, count int, more ...kgo.Opt) error {
	var members [2]*kgo.Client
	var owned [2]atomic.Int32
	for n := range members {
		options := append([]kgo.Opt{
			kgo.SeedBrokers(servers), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
			kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxWait(wait),
			kgo.HeartbeatInterval(300 * time.Millisecond),
			kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, got map[string][]int32) {
				owned[n].Add(int32(len(got[topic])))
			}),
			kgo.OnPartitionsRevoked(func(ctx context.Context, member *kgo.Client, lost map[string][]int32) {
				// Who gets them may not come to read them: all is read already.
				if err := member.CommitUncommittedOffsets(ctx); err != nil {
					fmt.Fprintln(os.Stderr, err)
				}
				owned[n].Add(-int32(len(lost[topic])))
			}),
		}, more...)
		member, err := kgo.NewClient(options...)
		if err != nil {
			return err
		}
		defer member.Close()
		members[n] = member
	}
	read := map[string]bool{}
	for len(read) < count || owned[0].Load() == 0 || owned[1].Load() == 0 {
		for _, member := range members {
			short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
			fetches := member.PollRecords(short, count)
			cancel()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			for _, record := range fetches.Records() {
				read[fmt.Sprintf("%d:%d", record.Partition, record.Offset)] = true
			}
		}
	}
	for _, member := range members {
		if err := member.CommitUncommittedOffsets(ctx); err != nil {
			return err
		}
	}
	for place := range read {
		fmt.Fprintln(out, place)
	}
	return nil
}

func transact(ctx context.Context, topic string, count int) error {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(servers), kgo.TransactionalID(topic), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		return err
	}
	defer client.Close()
	for n := range count {
		if err := client.BeginTransaction(); err != nil {
			return err
		}
		record := &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(n))}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return err
		}
		if err := client.EndTransaction(ctx, kgo.TransactionEndTry(n%3 != 1)); err != nil {
			return err
		}
	}
	return nil
}

// share reads as a share group, and hands the first record of all back once.
func share(ctx context.Context, topic, group string, count int) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(servers), kgo.ShareGroup(group), kgo.ConsumeTopics(topic))
	if err != nil {
		return err
	}
	defer client.Close()
	times := map[string]int{}
	for total := 0; total <= count; {
		fetches := client.PollRecords(ctx, count)
		if err := fetches.Err(); err != nil {
			return err
		}
		for _, record := range fetches.Records() {
			total++
			place := fmt.Sprintf("%d:%d", record.Partition, record.Offset)
			times[place]++
			if place == "0:0" && times[place] == 1 {
				record.Ack(kgo.AckRelease)
			} else {
				record.Ack(kgo.AckAccept)
			}
		}
	}
	for place, count := range times {
		fmt.Fprintf(out, "%s\t%d\n", place, count)
	}
	return nil
}
