package fairlead.plugins;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.config.ConfigValue;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.connector.policy.ConnectorClientConfigOverridePolicy;
import org.apache.kafka.connect.connector.policy.ConnectorClientConfigRequest;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * The worker's policy on settings of clients, and one setting that is not the user's: each task of a sink is a
 * static member of its consumer group (KIP-345). After the death of a host its successor has the same partitions
 * at once, and the broker refuses what a zombie still commits.
 */
final class OwnOverrides implements ConnectorClientConfigOverridePolicy {
    private static final String INSTANCE_ID = ConsumerConfig.GROUP_INSTANCE_ID_CONFIG;
    private static final String KEY = ConnectorConfig.CONNECTOR_CLIENT_CONSUMER_OVERRIDES_PREFIX + INSTANCE_ID;

    private final ConnectorClientConfigOverridePolicy policy;

    OwnOverrides(ConnectorClientConfigOverridePolicy policy) {
        this.policy = policy;
    }

    /** Returns the config of a sink in which its task has an instance id, unless the user has given one. */
    static Map<String, String> withInstanceId(Map<String, String> config, WorkerConfig worker, ConnectorTaskId id) {
        if (config.containsKey(KEY) || worker.originals().containsKey("consumer." + INSTANCE_ID)) {
            return config;
        }
        Map<String, String> named = new HashMap<>(config);
        named.put(KEY, id.toString());
        return named;
    }

    /** Returns a regular expression for the instance ids that a connector's tasks have by themselves. */
    static String instanceIds(String connector) {
        return Pattern.quote(connector) + "-\\d+";
    }

    @Override
    public List<ConfigValue> validate(ConnectorClientConfigRequest request) {
        Map<String, Object> asked = new HashMap<>(request.clientProps());
        asked.remove(INSTANCE_ID, own(request));
        return policy.validate(new ConnectorClientConfigRequest(
            request.connectorName(), request.connectorType(), request.connectorClass(), asked, request.clientType()));
    }

    /** The instance id that {@link #withInstanceId} would have given is not the user's wish. */
    private static Object own(ConnectorClientConfigRequest request) {
        Object given = request.clientProps().get(INSTANCE_ID);
        return given instanceof String text && text.matches(instanceIds(request.connectorName())) ? given : "";
    }

    @Override
    public void configure(Map<String, ?> configs) {
        policy.configure(configs);
    }

    @Override
    public void close() {
        Utils.closeQuietly(policy, "policy on settings of clients");
    }
}
