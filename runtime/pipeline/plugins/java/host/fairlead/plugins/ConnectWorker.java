package fairlead.plugins;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeoutException;
import java.util.function.Consumer;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.common.metrics.PluginMetrics;
import org.apache.kafka.common.metrics.internals.PluginMetricsImpl;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.connector.policy.ConnectorClientConfigOverridePolicy;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.json.JsonConverterConfig;
import org.apache.kafka.connect.runtime.AbstractHerder;
import org.apache.kafka.connect.runtime.BatchTask;
import org.apache.kafka.connect.runtime.CloseableConnectorContext;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.FeedTask;
import org.apache.kafka.connect.runtime.OffsetChange;
import org.apache.kafka.connect.runtime.SinkConnectorConfig;
import org.apache.kafka.connect.runtime.SourceConnectorConfig;
import org.apache.kafka.connect.runtime.TargetState;
import org.apache.kafka.connect.runtime.TaskStatus;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.runtime.rest.entities.ConnectorOffsets;
import org.apache.kafka.connect.runtime.rest.entities.ConnectorType;
import org.apache.kafka.connect.runtime.rest.entities.Message;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.storage.KafkaOffsetBackingStore;
import org.apache.kafka.connect.util.Callback;
import org.apache.kafka.connect.util.ConnectUtils;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.connect.util.SharedTopicAdmin;

/**
 * Runs connectors and tasks by Kafka's own {@code Worker}. What a herder decides in Connect, the other process
 * says: what runs here, and whether a task may still write.
 */
final class ConnectWorker {
    private static final TypeReference<Map<String, String>> TEXTS = new TypeReference<>() {
    };
    private static final TypeReference<Set<String>> NAMES = new TypeReference<>() {
    };
    private static final long ASK_MS = 10_000;
    private static final long LOOK_MS = 20;
    private static final long CANCEL_NS = 1_000_000_000;
    private static final String RUNTIME = "org.apache.kafka.connect.runtime.";
    private static final String CLIENTS = "org.apache.kafka.clients.";

    private final Plugins plugins;
    private final Link link;
    private final DistributedConfig config;
    private final Worker worker;
    private final AbstractHerder herder;
    private final StateNews states;
    private final Offsets offsets;
    private final SinkMembers members;
    private final RunningTasks running;

    /** What takes the records of the tasks of sources that do not write to Kafka. */
    private final Map<ConnectorTaskId, HandOver> batches = new ConcurrentHashMap<>();
    /** What has the rows for the tasks of sinks that read no topic. */
    private final Map<ConnectorTaskId, RecordFeed> feeds = new ConcurrentHashMap<>();
    /** Whether its sources write to Kafka, and have their offsets there. */
    private final boolean isOnline;

    /** Waits for a broker of Kafka; throws a ConnectException if none answers. */
    static ConnectWorker online(Plugins plugins, Map<String, String> properties, String name, Link link) {
        return new ConnectWorker(plugins, IdleHerder.online(properties), properties, name, link, true);
    }

    /** Returns a worker for tasks whose records the other process takes or gives; it reaches no broker. */
    static ConnectWorker offline(Plugins plugins, Map<String, String> properties, String name, Link link) {
        Map<String, String> own = new HashMap<>(properties);
        own.put(DistributedConfig.EXACTLY_ONCE_SOURCE_SUPPORT_CONFIG, "disabled"); // that is of Kafka's transactions
        return new ConnectWorker(plugins, IdleHerder.offline(own), own, name, link, false);
    }

    private ConnectWorker(
        Plugins plugins,
        DistributedConfig config,
        Map<String, String> properties,
        String name,
        Link link,
        boolean isOnline) {
        this.plugins = plugins;
        this.link = link;
        this.config = config;
        this.isOnline = isOnline;
        Plugins.compareAndSwapLoaders(plugins.delegatingLoader());
        states = new StateNews(link);
        ConnectorClientConfigOverridePolicy policy = new OwnOverrides(plugins.newPlugin(
            config.getString(WorkerConfig.CONNECTOR_CLIENT_POLICY_CLASS_CONFIG),
            config,
            ConnectorClientConfigOverridePolicy.class));
        worker = new Worker(name, Time.SYSTEM, plugins, config, isOnline ? offsetStore() : new LoggedOffsets(link), policy);
        References.tellOf(worker, link);
        herder = IdleHerder.of(
            worker, properties, policy, states, connector -> link.tell("reload", Map.of("connector", connector)));
        members = new SinkMembers(config);
        offsets = new Offsets(worker, config, members);
        running = new RunningTasks(worker);
        try {
            worker.start();
        } catch (RuntimeException failed) {
            worker.stop(); // it is tried again, with another one
            throw failed;
        }
    }

    private KafkaOffsetBackingStore offsetStore() {
        String client = ConnectUtils.clientIdBase(config);
        Map<String, Object> admin = new HashMap<>(config.originals());
        ConnectUtils.addMetricsContextProperties(admin, config, config.kafkaClusterId());
        admin.put(CommonClientConfigs.CLIENT_ID_CONFIG, client + "shared-admin");
        KafkaOffsetBackingStore store = new KafkaOffsetBackingStore(
            new SharedTopicAdmin(admin),
            () -> client,
            plugins.newInternalConverter(
                true, JsonConverter.class.getName(), Map.of(JsonConverterConfig.SCHEMAS_ENABLE_CONFIG, "false")));
        store.configure(config);
        return store;
    }

    /**
     * Starts a connector by a name that may differ from that in its config; returns its task configs, with references as
     * they are in its config.
     */
    List<Map<String, String>> startConnector(String name, Map<String, String> given) throws Throwable {
        ClusterConfigState raw = state(name, given, Map.of(), 0);
        Map<String, String> resolved;
        try {
            resolved = require(raw.connectorConfig(name));
        } catch (RuntimeException failed) {
            herder.onFailure(name, failed);
            throw failed;
        }
        ConnectWorker.<TargetState>await(done -> worker.startConnector(
            name, resolved, new Context(name), herder, TargetState.STARTED, done));
        return taskConfigs(name, given);
    }

    /** Returns how a connector that runs splits its work now. */
    List<Map<String, String>> taskConfigs(String name, Map<String, String> given) {
        ClusterConfigState raw = state(name, given, Map.of(), 0);
        ConnectorConfig parsed = worker.isSinkConnector(name)
            ? new SinkConnectorConfig(plugins, raw.connectorConfig(name))
            : new SourceConnectorConfig(plugins, raw.connectorConfig(name), worker.isTopicCreationEnabled());
        return AbstractHerder.reverseTransform(name, raw, worker.connectorTaskConfigs(name, parsed));
    }

    /** Returns what a source says of resuming right behind its offset; "" for a sink. */
    String exactlyOnce(Map<String, String> given) {
        return ExactlyOnce.ask(plugins, resolve(given));
    }

    /** Returns whether the tasks of a connector write by transactions, so that Kafka can refuse those of zombies. */
    boolean fences(Map<String, String> given) {
        return config.exactlyOnceSourceEnabled()
            && !worker.isSinkConnector(given.get(ConnectorConfig.NAME_CONFIG));
    }

    /** Has Kafka refuse all writes of the producers that the first tasks of a source have had until now. */
    void fence(Map<String, String> given, int tasks) throws Throwable {
        String name = given.get(ConnectorConfig.NAME_CONFIG);
        try {
            worker.fenceZombies(name, tasks, state(name, given, Map.of(), 0).connectorConfig(name)).get();
        } catch (ExecutionException failed) {
            throw failed.getCause();
        }
    }

    /** Does that for all tasks that another connector of this name has had, and Kafka still knows of. */
    void fenceFormer(Map<String, String> given) throws Throwable {
        if (fences(given)) {
            int tasks = FormerTasks.count(config, resolve(given));
            if (tasks > 0) {
                fence(given, tasks);
            }
        }
    }

    /** Returns the offsets of a connector, running or not. */
    ConnectorOffsets offsets(Map<String, String> given) throws Throwable {
        return offsets.read(resolve(given));
    }

    /**
     * Changes offsets of a connector that is stopped, or removes all: then {@code changed} is null. A source has had
     * as many tasks as told.
     */
    Message modifyOffsets(Map<String, String> given, ConnectorOffsets changed, int tasks) throws Throwable {
        Map<String, String> resolved = resolve(given);
        boolean isSink = herder.connectorType(resolved) == ConnectorType.SINK;
        offsets.reach(resolved).close(); // to fence waits for longer than that
        if (!isSink && tasks > 0) {
            try {
                fence(given, tasks);
            } catch (Throwable failed) {
                throw new ConnectException(
                    "Failed to perform zombie fencing for source connector prior to modifying offsets", failed);
            }
        }
        return offsets.modify(resolved, changed, isSink);
    }

    /**
     * Asks the connector whether offsets that the other process has may change so; null: all are removed. It may change
     * what it keeps outside, as in Connect.
     */
    Message askForOffsets(
        Map<String, String> given, ConnectorOffsets changed, Set<Map<String, Object>> known) throws Throwable {
        Map<String, String> resolved = resolve(given);
        return ConnectWorker.await(done -> OffsetChange.make(
            worker, resolved, changed == null ? null : changed.toMap(), new KnownPartitions(known), done));
    }

    /**
     * Starts a task, or creates it paused; it is told as a state whether that succeeds. Its connector may have another
     * name than in its config. Records for another than Kafka itself are for a {@code cluster} of Kafka that the other
     * process writes to, or {@code held} for a sink here, or rows with columns {@code beside} those of their values. A
     * sink that reads no topic needs to know what it is {@code fed} with. A source is {@code paired} if its sink is a
     * plugin, too.
     */
    void startTask(
        ConnectorTaskId id,
        Map<String, String> given,
        Map<String, String> task,
        int tasks,
        TargetState target,
        JsonNode with) {
        ClusterConfigState raw = state(id.connector(), given, Map.of(id, task), tasks);
        Map<String, String> own;
        Map<String, String> ownTask;
        states.forget(id);
        try {
            own = require(raw.connectorConfig(id.connector()));
            ownTask = require(raw.taskConfig(id));
        } catch (RuntimeException failed) {
            herder.onFailure(id, failed);
            return;
        }
        if (!isOnline && herder.connectorType(own) == ConnectorType.SINK) {
            RecordFeed feed = new RecordFeed(link, id, with.path("fed"), own);
            feeds.put(id, feed);
            FeedTask.start(worker, id, raw, own, ownTask, herder, plugins, config, feed);
        } else if (!isOnline) {
            Map<String, String> cluster = Link.JSON.convertValue(with.get("cluster"), TEXTS);
            HandOver batch = new HandOver(link, id, cluster, handed(with), with.path("paired").asBoolean());
            batches.put(id, batch);
            BatchTask.start(worker, id, raw, own, ownTask, herder, plugins, config, batch);
        } else if (herder.connectorType(own) == ConnectorType.SINK) {
            Map<String, String> named = OwnOverrides.withInstanceId(own, config, id);
            worker.startSinkTask(id, raw, named, ownTask, herder, target);
        } else if (config.exactlyOnceSourceEnabled()) {
            Runnable check = () -> requireRight(id);
            worker.startExactlyOnceSourceTask(id, raw, own, ownTask, herder, target, check, check);
        } else {
            worker.startSourceTask(id, raw, own, ownTask, herder, target);
        }
    }

    private static Handed handed(JsonNode with) {
        if (with.path("held").asBoolean()) {
            return new HeldRecords();
        }
        return with.has("cluster")
            ? new HandedRecords()
            : new HandedRows(Link.JSON.convertValue(with.get("beside"), NAMES));
    }

    /** Has a task pause in its place, with its clients, or go on. */
    void turnTask(String connector, int number, TargetState target) throws Throwable {
        running.turn(new ConnectorTaskId(connector, number), target);
    }

    /** Has a task of a sink that has ended for good leave its consumer group, so that others get its partitions. */
    void leave(Map<String, String> given, int number) throws Throwable {
        Map<String, String> resolved = resolve(given);
        if (herder.connectorType(resolved) == ConnectorType.SINK) {
            members.remove(resolved, new ConnectorTaskId(ConnectorAdmin.nameOf(given), number));
        }
    }

    /** Tells a task that a batch of its records is committed, and at which places, if they are known. */
    void confirm(String connector, int number, long batch, JsonNode places) {
        HandOver open = batches.get(new ConnectorTaskId(connector, number));
        if (open != null) {
            open.confirm(batch, places);
        }
    }

    /** Tells a task that a sink here has been given a batch of its records. */
    void pass(String connector, int number, long batch) {
        HandOver open = batches.get(new ConnectorTaskId(connector, number));
        if (open != null) {
            open.pass(batch);
        }
    }

    /** Gives a batch of rows to a task; a source's task of the same number may hold their records. */
    void feed(String connector, int number, JsonNode batch) throws IOException {
        RecordFeed feed = feeds.get(new ConnectorTaskId(connector, number));
        if (feed == null) {
            throw new IllegalStateException(connector + "-" + number + " has no task that is fed");
        }
        HandOver source = batch.has("of") ? batches.get(new ConnectorTaskId(batch.get("of").asText(), number)) : null;
        if (batch.has("of") && source == null) {
            throw new IllegalStateException("no task here has the records for " + connector + "-" + number);
        }
        feed.add(batch, source);
    }

    /** Stops a task, and waits for it as long as the worker's properties say; returns where it hangs, or "". */
    String stopTask(String connector, int number) {
        ConnectorTaskId id = new ConnectorTaskId(connector, number);
        HandOver open = batches.remove(id);
        if (open != null) {
            open.close();
        }
        if (!worker.taskIds().contains(id)) {
            return "";
        }
        feeds.remove(id);
        worker.stopAndAwaitTask(id); // one that is too slow is cancelled, which closes its clients at once
        long by = System.nanoTime() + CANCEL_NS;
        while (!hasEnded(id) && System.nanoTime() < by) {
            Utils.sleep(LOOK_MS);
        }
        return hasEnded(id) ? "" : locate("task-thread-" + id);
    }

    private boolean hasEnded(ConnectorTaskId id) {
        TaskStatus last = states.get(id);
        return last != null
            && (last.state() == TaskStatus.State.UNASSIGNED || last.state() == TaskStatus.State.FAILED);
    }

    /** Stops a connector; returns where it hangs, or "". */
    String stopConnector(String connector) {
        if (!worker.connectorNames().contains(connector)) {
            return "";
        }
        worker.stopAndAwaitConnector(connector);
        return locate("connector-thread-" + connector);
    }

    /** Returns which method of a task is at work other than poll, and the line where it is; null if none is. */
    Map<String, String> busy(String connector, int number) {
        String name = "task-thread-" + new ConnectorTaskId(connector, number);
        return Thread.getAllStackTraces().entrySet().stream()
            .filter(each -> each.getKey().getName().equals(name))
            .map(each -> busy(each.getValue()))
            .filter(Objects::nonNull)
            .findFirst()
            .orElse(null);
    }

    /** Finds what Connect's own classes have called, unless that is of Java, of Kafka's clients, or a poll. */
    private static Map<String, String> busy(StackTraceElement[] frames) {
        for (int each = 0; each + 1 < frames.length; each++) {
            StackTraceElement called = frames[each];
            boolean ours = called.getClassName().startsWith(RUNTIME);
            if (!ours && frames[each + 1].getClassName().startsWith(RUNTIME)) {
                boolean waits = called.getModuleName() != null
                    || called.getClassName().startsWith(CLIENTS)
                    || called.getMethodName().equals("poll");
                return waits ? null : Map.of("method", called.getMethodName(), "line", Link.locate(frames));
            }
        }
        return null;
    }

    /** Returns the line at which the thread with a name is, and at which it stays; "" if there is no such thread. */
    private static String locate(String thread) {
        Utils.sleep(LOOK_MS); // a thread that has just ended gives its name back a moment later
        return Thread.getAllStackTraces().entrySet().stream()
            .filter(each -> each.getKey().getName().equals(thread))
            .map(each -> Link.locate(each.getValue()))
            .findFirst()
            .orElse("");
    }

    /** Returns a config without references; no restart is planned for when a value is no longer good. */
    private Map<String, String> resolve(Map<String, String> given) {
        return require(worker.configTransformer().transform(given));
    }

    private Map<String, String> require(Map<String, String> resolved) {
        References.require(resolved, config.getList(WorkerConfig.CONFIG_PROVIDERS_CONFIG));
        return resolved;
    }

    /** Returns the configs of one connector as Connect's own classes want to read them. */
    private ClusterConfigState state(
        String name, Map<String, String> given, Map<ConnectorTaskId, Map<String, String>> tasks, int count) {
        return new ClusterConfigState(
            0,
            null,
            Map.of(name, count),
            Map.of(name, given),
            Map.of(name, TargetState.STARTED),
            tasks,
            Map.of(),
            Map.of(),
            Map.of(),
            Set.of(),
            Set.of(),
            worker.configTransformer());
    }

    /** Throws a ConnectException unless the other process says that a task may still write. */
    private void requireRight(ConnectorTaskId id) {
        try {
            JsonNode may = link.ask("may write", Map.of("connector", id.connector(), "task", id.task()), ASK_MS);
            if (!may.asBoolean()) {
                throw new ConnectException("task " + id + " may not write here, or not now");
            }
        } catch (IOException | TimeoutException silent) {
            throw new ConnectException("it is not known whether task " + id + " may still write", silent);
        }
    }

    /** Returns what a question is answered with. */
    static <T> T await(Consumer<Callback<T>> question) throws Throwable {
        CompletableFuture<T> answer = new CompletableFuture<>();
        question.accept((error, value) -> {
            if (error == null) {
                answer.complete(value);
            } else {
                answer.completeExceptionally(error);
            }
        });
        try {
            return answer.get();
        } catch (ExecutionException failed) {
            throw failed.getCause();
        }
    }

    /** What a connector can ask of its worker. */
    private final class Context implements CloseableConnectorContext {
        private final String connector;
        private final PluginMetricsImpl metrics;
        private volatile boolean closed;

        Context(String connector) {
            this.connector = connector;
            metrics = worker.metrics().connectorPluginMetrics(connector);
        }

        @Override
        public void requestTaskReconfiguration() {
            require();
            link.tell("reconfigure", Map.of("connector", connector));
        }

        @Override
        public void raiseError(Exception error) {
            require();
            herder.onFailure(connector, error);
        }

        @Override
        public PluginMetrics pluginMetrics() {
            return metrics;
        }

        @Override
        public void close() {
            closed = true;
            Utils.closeQuietly(metrics, "metrics of " + connector);
        }

        private void require() {
            if (closed) {
                throw new ConnectException("connector " + connector + " has been stopped");
            }
        }
    }
}
