package fairlead.plugins;

import java.lang.reflect.Field;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.connector.policy.ConnectorClientConfigOverridePolicy;
import org.apache.kafka.connect.runtime.HerderRequest;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.runtime.distributed.DistributedHerder;
import org.apache.kafka.connect.storage.MemoryConfigBackingStore;
import org.apache.kafka.connect.storage.StatusBackingStore;
import org.apache.kafka.connect.util.Callback;

/**
 * Kafka's herder without its protocol: it is never started, and its clients have the address of no broker. A
 * {@code Worker} needs one, and a herder can do much that needs no group.
 */
final class IdleHerder {
    static final String UNUSED = "unused";
    private static final String NOBODY = "127.0.0.1:1";
    /** What the herder's clients would need to reach a broker: files and secrets that it has no use for. */
    private static final List<String> SECURITY = List.of("security.protocol", "sasl.", "ssl.");

    private IdleHerder() {
    }

    /**
     * Returns a herder for a worker with these properties; it keeps states in {@code states}, and has connectors
     * whose references are out of date be restarted by {@code restart}.
     */
    static DistributedHerder of(
        Worker worker,
        Map<String, String> properties,
        ConnectorClientConfigOverridePolicy policy,
        StatusBackingStore states,
        Consumer<String> restart) {
        Map<String, String> own = new HashMap<>(properties);
        own.keySet().removeIf(key -> SECURITY.stream().anyMatch(key::startsWith));
        MemoryConfigBackingStore configs = new MemoryConfigBackingStore(worker.configTransformer());
        String url = "http://" + NOBODY + "/";
        return new DistributedHerder(
            offline(own), Time.SYSTEM, worker, UNUSED, states, configs, url, null, policy, List.of()) {
            @Override
            public HerderRequest restartConnector(long delayMs, String connector, Callback<Void> done) {
                Executor later = CompletableFuture.delayedExecutor(delayMs, TimeUnit.MILLISECONDS);
                CompletableFuture<Void> planned = CompletableFuture.runAsync(() -> restart.accept(connector), later);
                return () -> planned.cancel(false);
            }
        };
    }

    /** Returns the config of a worker that knows its cluster's id: otherwise it asks a broker, and waits for it. */
    static DistributedConfig offline(Map<String, String> properties) {
        Map<String, String> all = new HashMap<>(properties);
        all.put(WorkerConfig.BOOTSTRAP_SERVERS_CONFIG, NOBODY);
        DistributedConfig config = online(all);
        set(WorkerConfig.class, "kafkaClusterId", config, UNUSED);
        return config;
    }

    /** Returns the config of a worker; the topics of what it does not keep need no names. */
    static DistributedConfig online(Map<String, String> properties) {
        Map<String, String> all = new HashMap<>(properties);
        all.putIfAbsent(DistributedConfig.OFFSET_STORAGE_TOPIC_CONFIG, UNUSED);
        all.put(DistributedConfig.CONFIG_TOPIC_CONFIG, UNUSED);
        all.put(DistributedConfig.STATUS_STORAGE_TOPIC_CONFIG, UNUSED);
        return new DistributedConfig(all);
    }

    /** Sets a private field. */
    static void set(Class<?> owner, String name, Object target, Object value) {
        try {
            Field field = owner.getDeclaredField(name);
            field.setAccessible(true);
            field.set(target, value);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this version of Connect is not supported", error);
        }
    }
}
