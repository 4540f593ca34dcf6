import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.util.Base64;
import java.util.Map;
import java.util.Properties;
import java.util.StringJoiner;
import java.util.TreeSet;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/**
 * Reads lines of a scope, a name and a text in Base64, and answers each with what Kafka makes of it:
 * the value's text, "-" when it is refused. The scope "properties" reads the text as a file.
 */
public class SettingValues {
    private static final Map<String, ConfigDef> SCOPES = Map.of(
        "BrokerSettings", AbstractKafkaConfig.CONFIG_DEF,
        "TopicSettings", LogConfig.configDefCopy(),
        "GroupSettings", GroupConfig.CONFIG_DEF,
        "ClientMetricsSettings", ClientMetricsConfigs.configDef(),
        "BrokerQuotaSettings", QuotaConfig.brokerQuotaConfigs(),
        "ClientQuotaSettings", QuotaConfig.userAndClientQuotaConfigs(),
        "IpQuotaSettings", QuotaConfig.ipConfigs());

    public static void main(String[] arguments) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        StringBuilder answers = new StringBuilder();
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] parts = line.split("\t", -1);
            String text = new String(Base64.getDecoder().decode(parts[2]), "UTF-8");
            String answer;
            try {
                answer = encode(parts[0].equals("properties") ? pairs(text) : value(parts[0], parts[1], text));
            } catch (IllegalArgumentException | org.apache.kafka.common.KafkaException refused) {
                answer = "-";
            }
            answers.append(answer).append('\n');
        }
        System.out.print(answers);
    }

    private static String value(String scope, String name, String text) {
        ConfigDef.ConfigKey key = SCOPES.get(scope).configKeys().get(name);
        ConfigDef only = new ConfigDef();
        only.define(key);
        return ConfigDef.convertToString(only.parse(Map.of(name, text)).get(name), key.type);
    }

    private static String pairs(String text) throws java.io.IOException {
        Properties properties = new Properties();
        properties.load(new StringReader(text));
        StringJoiner pairs = new StringJoiner(" ");
        for (String key : new TreeSet<>(properties.stringPropertyNames()))
            pairs.add(encode(key) + "=" + encode(properties.getProperty(key)));
        return pairs.toString();
    }

    private static String encode(String text) throws java.io.UnsupportedEncodingException {
        return "." + Base64.getEncoder().encodeToString(text.getBytes("UTF-8"));
    }
}
