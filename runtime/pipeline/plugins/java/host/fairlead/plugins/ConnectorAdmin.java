package fairlead.plugins;

import java.util.HashMap;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.WorkerConfig;

/** Clients of a connector's Kafka, with the settings that Connect gives to the one for a sink's offsets. */
final class ConnectorAdmin {
    private ConnectorAdmin() {
    }

    /** Opens a client for a purpose, which is in its name; the connector's config has no references any more. */
    static Admin open(WorkerConfig config, Map<String, String> connector, String purpose) {
        Map<String, Object> all = new HashMap<>(config.originals());
        all.keySet().removeIf(key -> key.matches("(admin|producer|consumer)\\..*"));
        all.put(AdminClientConfig.CLIENT_ID_CONFIG, purpose + "-" + nameOf(connector));
        all.putAll(config.originalsWithPrefix("admin."));
        all.putAll(overrides(connector, ConnectorConfig.CONNECTOR_CLIENT_ADMIN_OVERRIDES_PREFIX));
        return Admin.create(all);
    }

    static String nameOf(Map<String, String> connector) {
        return connector.get(ConnectorConfig.NAME_CONFIG);
    }

    /** Returns a connector's own settings for one kind of clients. */
    static Map<String, Object> overrides(Map<String, String> connector, String prefix) {
        return connector.entrySet().stream()
            .filter(each -> each.getKey().startsWith(prefix))
            .collect(Collectors.toMap(each -> each.getKey().substring(prefix.length()), Map.Entry::getValue));
    }
}
