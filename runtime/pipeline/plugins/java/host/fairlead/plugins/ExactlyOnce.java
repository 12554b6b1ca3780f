package fairlead.plugins;

import java.util.Locale;
import java.util.Map;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.isolation.PluginUtils;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.source.ExactlyOnceSupport;
import org.apache.kafka.connect.source.SourceConnector;

/**
 * Asks a source whether it resumes right behind its offset with a config, as Connect's herder does where the config
 * requires that: a connector that was not started.
 */
final class ExactlyOnce {
    private ExactlyOnce() {
    }

    /** Returns what it says: supported, unsupported, undefined if it says nothing, or failed and the error's class. */
    static String ask(Plugins plugins, Map<String, String> config) {
        try {
            Connector connector = plugins.newConnector(
                config.get(ConnectorConfig.CONNECTOR_CLASS_CONFIG),
                PluginUtils.connectorVersionRequirement(config.get(ConnectorConfig.CONNECTOR_VERSION)));
            if (!(connector instanceof SourceConnector source)) {
                return "";
            }
            ClassLoader before = Plugins.compareAndSwapLoaders(source.getClass().getClassLoader());
            try {
                ExactlyOnceSupport support = source.exactlyOnceSupport(config);
                return support == null ? "undefined" : support.name().toLowerCase(Locale.ROOT);
            } finally {
                Plugins.compareAndSwapLoaders(before);
            }
        } catch (Exception | LinkageError failure) {
            failure.printStackTrace(); // its message may have a secret: that belongs to the log, which masks it
            return "failed " + failure.getClass().getName();
        }
    }
}
