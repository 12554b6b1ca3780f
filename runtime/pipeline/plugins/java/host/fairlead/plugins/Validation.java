package fairlead.plugins;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.connector.policy.ConnectorClientConfigOverridePolicy;
import org.apache.kafka.connect.runtime.AbstractHerder;
import org.apache.kafka.connect.runtime.CachedConnectors;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.runtime.isolation.PluginUtils;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.runtime.rest.entities.ConfigInfos;
import org.apache.kafka.connect.runtime.rest.entities.ConfigKeyInfo;
import org.apache.kafka.connect.runtime.rest.errors.BadRequestException;
import org.apache.kafka.connect.runtime.rest.errors.ConnectRestException;
import org.apache.kafka.connect.storage.MemoryOffsetBackingStore;
import org.apache.kafka.connect.storage.MemoryStatusBackingStore;
import org.apache.kafka.connect.util.FutureCallback;
import org.apache.kafka.connect.util.Stage;
import org.apache.kafka.connect.util.StagedTimeoutException;
import org.apache.maven.artifact.versioning.InvalidVersionSpecificationException;

/**
 * Answers for plugins as a distributed worker of Connect does, by its own herder. The herder is never started,
 * and its clients have the address of no broker: it looks at configs, and reaches nobody.
 */
final class Validation {
    private static final int SERVER_ERROR = 500;

    private final Plugins plugins;
    private final AbstractHerder herder;

    Validation(Plugins plugins, Map<String, String> properties, Link link) {
        this.plugins = plugins;
        Plugins.compareAndSwapLoaders(plugins.delegatingLoader());
        DistributedConfig config = IdleHerder.offline(properties);
        ConnectorClientConfigOverridePolicy policy = plugins.newPlugin(
            config.getString(WorkerConfig.CONNECTOR_CLIENT_POLICY_CLASS_CONFIG),
            config,
            ConnectorClientConfigOverridePolicy.class);
        Worker worker = new Worker(IdleHerder.UNUSED, Time.SYSTEM, plugins, config, new NoOffsets(), policy);
        References.tellOf(worker, link);
        herder = IdleHerder.of(worker, properties, policy, new MemoryStatusBackingStore(), connector -> { });
    }

    /** Returns the definitions of a plugin's keys; a range of versions is in Maven's syntax, or "latest". */
    List<ConfigKeyInfo> keys(String plugin, String version) {
        try {
            return herder.connectorPluginConfig(plugin, PluginUtils.connectorVersionRequirement(version));
        } catch (InvalidVersionSpecificationException error) {
            throw new BadRequestException("Invalid version specification: " + version, error);
        }
    }

    /** Validates a config for up to a number of milliseconds. */
    ConfigInfos validate(Map<String, String> config, long milliseconds) throws Throwable {
        forget();
        Answer answer = new Answer();
        herder.validateConnectorConfig(config, answer, false);
        try {
            return answer.get(milliseconds, TimeUnit.MILLISECONDS);
        } catch (StagedTimeoutException slow) {
            throw new Overdue(". " + slow.stage().summarize() + answer.locate());
        } catch (TimeoutException slow) {
            throw new Overdue(answer.locate());
        } catch (ExecutionException failed) {
            throw failed.getCause();
        }
    }

    /**
     * Has the herder forget the connectors that it has made, and those that it could not make. It remembers that a
     * version is not there, but not which are: the second config with such a version would end in a
     * NullPointerException.
     */
    private void forget() {
        IdleHerder.set(AbstractHerder.class, "cachedConnectors", herder, new CachedConnectors(plugins));
    }

    /** A validation that has not ended in time; its thread cannot be taken back, so this JVM is to be replaced. */
    private static final class Overdue extends ConnectRestException {
        private static final long serialVersionUID = 1L;

        Overdue(String rest) {
            super(SERVER_ERROR, "Request timed out" + rest);
        }
    }

    /** A validation that goes on, and the thread that it is on. */
    private static final class Answer extends FutureCallback<ConfigInfos> {
        private volatile Thread thread;

        @Override
        public void recordStage(Stage stage) {
            thread = Thread.currentThread();
            super.recordStage(stage);
        }

        String locate() {
            String place = thread == null ? "" : Link.locate(thread.getStackTrace());
            return place.isEmpty() ? "" : "; its code is at " + place;
        }
    }

    /** A worker needs a store of offsets, also one that has no tasks. */
    private static final class NoOffsets extends MemoryOffsetBackingStore {
        @Override
        public Set<Map<String, Object>> connectorPartitions(String connector) {
            return Set.of();
        }
    }
}
