import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigDef.ConfigKey;
import org.apache.kafka.common.config.ConfigDef.Validator;
import org.apache.kafka.coordinator.group.GroupConfig;
import org.apache.kafka.server.config.AbstractKafkaConfig;
import org.apache.kafka.server.config.ConfigSynonym;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.server.config.QuotaConfig;
import org.apache.kafka.server.config.ServerTopicConfigSynonyms;
import org.apache.kafka.server.metrics.ClientMetricsConfigs;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints the facts of every setting, and which settings stand for which, separated by tabs. */
public class Settings {
    public static void main(String[] arguments) throws ReflectiveOperationException {
        print("broker", AbstractKafkaConfig.CONFIG_DEF);
        print("broker-quota", QuotaConfig.brokerQuotaConfigs());
        print("topic", LogConfig.configDefCopy());
        print("group", GroupConfig.CONFIG_DEF);
        print("client-metrics", ClientMetricsConfigs.configDef());
        print("client-quota", QuotaConfig.userAndClientQuotaConfigs());
        print("ip-quota", QuotaConfig.ipConfigs());
        printSynonyms();
    }

    private static void print(String scope, ConfigDef settings) throws ReflectiveOperationException {
        Map<String, String> modes = DynamicBrokerConfig.dynamicConfigUpdateModes();
        for (ConfigKey key : new TreeMap<>(settings.configKeys()).values()) {
            // A topic may have a setting of the same name, which is not this one.
            String mode = scope.startsWith("broker") ? modes.getOrDefault(key.name, "read-only") : "read-only";
            List<String> fields = new ArrayList<>(
                List.of("setting", scope, key.name, key.type.name(), key.importance.name(), mode,
                    String.valueOf(key.internalConfig), defaultText(key)));
            fields.addAll(rule(key.validator));
            System.out.println(String.join("\t", fields));
        }
    }

    private static String defaultText(ConfigKey key) {
        if (!key.hasDefault())
            return "required";
        return key.defaultValue == null ? "none" : "=" + ConfigDef.convertToString(key.defaultValue, key.type);
    }

    private static List<String> rule(Validator validator) throws ReflectiveOperationException {
        if (validator == null)
            return List.of("any");
        List<String> parts = new ArrayList<>(List.of(validator.getClass().getSimpleName()));
        if (validator instanceof ConfigDef.Range) {
            parts.add(String.valueOf(field(validator, "min")));
            parts.add(String.valueOf(field(validator, "max")));
        } else if (validator instanceof ConfigDef.ValidList) {
            parts.add(String.valueOf(field(validator, "isEmptyAllowed")));
            for (Object text : (List<?>) field(field(validator, "validString"), "validStrings"))
                parts.add(text.toString());
        } else if (validator instanceof ConfigDef.ValidString
                || validator instanceof ConfigDef.CaseInsensitiveValidString) {
            for (Object text : (Iterable<?>) field(validator, "validStrings"))
                parts.add(text.toString());
        }
        return parts;
    }

    private static Object field(Object owner, String name) throws ReflectiveOperationException {
        Field field = owner.getClass().getDeclaredField(name);
        field.setAccessible(true);
        return field.get(owner);
    }

    private static void printSynonyms() {
        for (String topic : new TreeMap<>(LogConfig.configDefCopy().configKeys()).keySet()) {
            List<ConfigSynonym> synonyms =
                ServerTopicConfigSynonyms.ALL_TOPIC_CONFIG_SYNONYMS.getOrDefault(topic, List.of());
            // A synonym in hours says how many milliseconds one hour is.
            for (ConfigSynonym synonym : synonyms)
                System.out.println(String.join("\t",
                    "synonym", "topic", topic, synonym.name(), synonym.converter().apply("1")));
        }
        for (String group : new TreeMap<>(GroupConfig.CONFIG_DEF.configKeys()).keySet()) {
            Optional<String> synonym = GroupConfig.brokerSynonym(group);
            if (synonym.isPresent())
                System.out.println(String.join("\t", "synonym", "group", group, synonym.get(), "1"));
        }
        for (String broker : new TreeMap<>(AbstractKafkaConfig.CONFIG_DEF.configKeys()).keySet()) {
            List<String> synonyms = DynamicBrokerConfig.brokerConfigSynonyms(broker, false);
            if (synonyms.size() > 1)
                for (String synonym : synonyms)
                    System.out.println(String.join("\t", "synonym", "broker", broker, synonym, "1"));
        }
    }
}
