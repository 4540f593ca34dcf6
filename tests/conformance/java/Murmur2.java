import java.util.HexFormat;
import java.util.Scanner;
import org.apache.kafka.common.utils.Utils;

/** Reads keys as hexadecimal lines, and answers each with Kafka's hash of it. */
public class Murmur2 {
    public static void main(String[] arguments) {
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            System.out.println(Utils.murmur2(HexFormat.of().parseHex(lines.nextLine())));
        }
    }
}
