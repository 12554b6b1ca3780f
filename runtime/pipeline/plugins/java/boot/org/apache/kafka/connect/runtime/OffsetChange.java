package org.apache.kafka.connect.runtime;

import java.util.Map;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.json.JsonConverterConfig;
import org.apache.kafka.connect.runtime.isolation.PluginUtils;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.runtime.rest.entities.Message;
import org.apache.kafka.connect.storage.ConnectorOffsetBackingStore;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.OffsetBackingStore;
import org.apache.kafka.connect.storage.OffsetStorageWriter;
import org.apache.kafka.connect.util.Callback;
import org.apache.kafka.connect.util.LoggingContext;

/**
 * Changes the offsets of a source connector by Connect's own code (KIP-875), in another store than a topic of Kafka.
 *
 * <p>It is in Connect's package, since its classes are seen from there alone.
 */
public final class OffsetChange {
    private static final String NO_TOPIC = " ";

    private OffsetChange() {
    }

    /** Asks a connector that is stopped, and then writes to the store; without offsets, removes all that it has. */
    public static void make(
        Worker worker,
        Map<String, String> config,
        Map<Map<String, ?>, Map<String, ?>> offsets,
        OffsetBackingStore store,
        Callback<Message> done) {
        Plugins plugins = worker.getPlugins();
        String name = config.get(ConnectorConfig.NAME_CONFIG);
        Connector connector;
        try {
            connector = plugins.newConnector(
                config.get(ConnectorConfig.CONNECTOR_CLASS_CONFIG),
                PluginUtils.connectorVersionRequirement(config.get(ConnectorConfig.CONNECTOR_VERSION)));
        } catch (Exception unknown) {
            throw new ConnectException("the connector's class or version is not here: " + unknown.getMessage(), unknown);
        }
        ConnectorOffsetBackingStore kept = ConnectorOffsetBackingStore.withOnlyWorkerStore(
            () -> LoggingContext.forConnector(name), store, NO_TOPIC);
        OffsetStorageWriter writer =
            new OffsetStorageWriter(kept, name, converter(plugins, true), converter(plugins, false));
        ClassLoader loader = connector.getClass().getClassLoader();
        worker.modifySourceConnectorOffsets(name, connector, config, offsets, kept, null, writer, loader, done);
    }

    private static Converter converter(Plugins plugins, boolean isKey) {
        return plugins.newInternalConverter(
            isKey, JsonConverter.class.getName(), Map.of(JsonConverterConfig.SCHEMAS_ENABLE_CONFIG, "false"));
    }
}
