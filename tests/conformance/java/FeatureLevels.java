import java.util.Map;
import org.apache.kafka.server.common.*;

/** Prints the levels of metadata.version, and of the other features with their defaults. */
public class FeatureLevels {
    public static void main(String[] arguments) {
        for (MetadataVersion version : MetadataVersion.VERSIONS) {
            if (!version.isProduction()) continue;
            System.out.println("level " + version.featureLevel() + " " + version.version()
                + " " + version.didMetadataChange()
                + " " + version.registerBrokerRecordVersion()
                + " " + version.partitionRecordVersion()
                + " " + version.partitionChangeRecordVersion()
                + " " + version.isMetadataTransactionSupported()
                + " " + version.isControllerRegistrationSupported()
                + " " + version.isLeaderEpochBumpRequiredOnIsrShrink());
        }
        for (Feature feature : Feature.PRODUCTION_FEATURES) {
            System.out.println("feature " + feature.featureName() + " " + feature.minimumProduction()
                + " " + feature.latestProduction());
            for (MetadataVersion version : MetadataVersion.VERSIONS) {
                if (!version.isProduction()) continue;
                System.out.println("default " + feature.featureName() + " " + version.featureLevel()
                    + " " + feature.defaultLevel(version));
            }
            for (FeatureVersion level : feature.featureVersions()) {
                for (Map.Entry<String, Short> need : level.dependencies().entrySet()) {
                    System.out.println("need " + feature.featureName() + " " + level.featureLevel()
                        + " " + need.getKey() + " " + need.getValue());
                }
            }
        }
    }
}
