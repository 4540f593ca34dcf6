// What Kafka's own members say and share out: one line of words is asked, one is answered.
//
// subscription VERSION TOPICS OWNED GENERATION RACK DATA -> hex
// assignment VERSION PARTITIONS -> hex
// sticky PARTITIONS GENERATION -> hex of the user data
// assign CLASS TOPIC:COUNT,... MEMBER/INSTANCE=TOPIC+TOPIC,... -> MEMBER=PARTITION+PARTITION,...

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.AbstractPartitionAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;

public class GroupMembers {
    public static void main(String[] args) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            System.out.println(answer(line.split(" ")));
        }
    }

    static String answer(String[] words) throws Exception {
        switch (words[0]) {
            case "subscription":
                return hex(ConsumerProtocol.serializeSubscription(
                    new Subscription(
                        list(words[2], ","),
                        words[6].equals("-") ? null : ByteBuffer.wrap(HexFormat.of().parseHex(words[6])),
                        partitions(words[3], ","),
                        Integer.parseInt(words[4]),
                        words[5].equals("-") ? Optional.empty() : Optional.of(words[5])),
                    Short.parseShort(words[1])));
            case "assignment":
                return hex(ConsumerProtocol.serializeAssignment(
                    new Assignment(partitions(words[2], ","), null), Short.parseShort(words[1])));
            case "sticky":
                StickyAssignor sticky = new StickyAssignor();
                sticky.onAssignment(
                    new Assignment(partitions(words[1], ",")),
                    new ConsumerGroupMetadata("g", Integer.parseInt(words[2]), "m", Optional.empty()));
                return hex(sticky.subscriptionUserData(Set.of()));
            default:
                return assign(words);
        }
    }

    static String assign(String[] words) throws Exception {
        AbstractPartitionAssignor assignor = (AbstractPartitionAssignor)
            Class.forName(words[1]).getDeclaredConstructor().newInstance();
        Map<String, Integer> counts = new HashMap<>();
        for (String each : list(words[2], ",")) {
            counts.put(each.split(":")[0], Integer.parseInt(each.split(":")[1]));
        }
        Map<String, Subscription> members = new HashMap<>();
        for (String each : list(words[3], ",")) {
            String[] names = each.substring(0, each.indexOf('=')).split("/");
            Subscription subscription =
                new Subscription(list(each.substring(each.indexOf('=') + 1), "\\+"));
            if (names.length > 1) {
                subscription.setGroupInstanceId(Optional.of(names[1]));
            }
            members.put(names[0], subscription);
        }
        List<String> told = new ArrayList<>();
        new TreeMap<>(assignor.assign(counts, members)).forEach((member, partitions) -> {
            List<String> names = new ArrayList<>();
            partitions.forEach(each -> names.add(each.toString()));
            names.sort(null);
            told.add(member + "=" + String.join("+", names));
        });
        return String.join(",", told);
    }

    static List<TopicPartition> partitions(String text, String separator) {
        List<TopicPartition> found = new ArrayList<>();
        for (String each : list(text, separator)) {
            int dash = each.lastIndexOf('-');
            found.add(new TopicPartition(each.substring(0, dash), Integer.parseInt(each.substring(dash + 1))));
        }
        return found;
    }

    static List<String> list(String text, String separator) {
        return text.equals("-") || text.isEmpty() ? List.of() : List.of(text.split(separator));
    }

    static String hex(ByteBuffer data) {
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        return HexFormat.of().formatHex(bytes);
    }
}
