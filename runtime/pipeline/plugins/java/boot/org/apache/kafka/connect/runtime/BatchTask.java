package org.apache.kafka.connect.runtime;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.json.JsonConverterConfig;
import org.apache.kafka.connect.runtime.errors.ErrorHandlingMetrics;
import org.apache.kafka.connect.runtime.errors.LogReporter;
import org.apache.kafka.connect.runtime.errors.RetryWithToleranceOperator;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.storage.ConnectorOffsetBackingStore;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.storage.OffsetBackingStore;
import org.apache.kafka.connect.storage.OffsetStorageReaderImpl;
import org.apache.kafka.connect.storage.OffsetStorageWriter;
import org.apache.kafka.connect.storage.StatusBackingStore;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.connect.util.LoggingContext;
import org.apache.kafka.connect.util.TopicAdmin;
import org.apache.kafka.connect.util.TopicCreationGroup;

/**
 * Starts a source task of Connect's that writes exactly once, with another producer than one of Kafka's, and other
 * offsets than those of a topic. So its transactions, and when they end, are Connect's own.
 *
 * <p>It is in Connect's package, since its classes are seen from there alone.
 */
public final class BatchTask extends Worker.TaskBuilder<SourceRecord, SourceRecord> {
    /** What a task is given instead of what is Kafka's. */
    public interface Parts {
        /** Takes the records; the end of a transaction is the end of a batch. */
        Producer<byte[], byte[]> producer();

        /** Converts keys, right before the producer takes the record; {@code own} is what the config names. */
        Plugin<Converter> keys(Plugin<Converter> own);

        /** Converts values, likewise. */
        Plugin<Converter> values(Plugin<Converter> own);

        /** Converts headers, likewise. */
        Plugin<HeaderConverter> headers(Plugin<HeaderConverter> own);

        /** Returns what is polled instead of the plugin's task, or that task. */
        SourceTask task(SourceTask own);

        /** The settings of a client that creates topics if the config asks for that; null: there are none. */
        Map<String, Object> cluster();

        /** Keeps the offsets. */
        OffsetBackingStore offsets();
    }

    private static final String NO_TOPIC = " ";

    private final Worker worker;
    private final Plugins plugins;
    private final WorkerConfig config;
    private final StatusBackingStore states;
    private final Parts parts;

    private BatchTask(
        Worker worker,
        ConnectorTaskId id,
        ClusterConfigState state,
        AbstractHerder herder,
        Plugins plugins,
        WorkerConfig config,
        Parts parts) {
        worker.super(id, state, herder, TargetState.STARTED);
        this.worker = worker;
        this.plugins = plugins;
        this.config = config;
        this.states = herder.statusBackingStore();
        this.parts = parts;
    }

    /** Starts a task as a worker does; the herder hears whether that succeeds. */
    public static void start(
        Worker worker,
        ConnectorTaskId id,
        ClusterConfigState state,
        Map<String, String> connector,
        Map<String, String> task,
        AbstractHerder herder,
        Plugins plugins,
        WorkerConfig config,
        Parts parts) {
        BatchTask builder = new BatchTask(worker, id, state, herder, plugins, config, parts);
        TaskStart.with(builder, worker, id, state, connector, task, herder);
    }

    @Override
    WorkerTask<SourceRecord, SourceRecord> doBuild(
        Task task,
        ConnectorTaskId id,
        ClusterConfigState state,
        TaskStatus.Listener listener,
        TargetState initialState,
        ConnectorConfig connector,
        Plugin<Converter> keyConverter,
        Plugin<Converter> valueConverter,
        Plugin<HeaderConverter> headerConverter,
        ClassLoader loader,
        RetryWithToleranceOperator<SourceRecord> retry,
        TransformationChain<SourceRecord, SourceRecord> transforms,
        ErrorHandlingMetrics errors,
        Class<? extends Connector> connectorClass,
        TaskPluginsMetadata metadata) {
        SourceConnectorConfig source =
            new SourceConnectorConfig(plugins, connector.originalsStrings(), config.topicCreationEnable());
        ConnectorOffsetBackingStore offsets = ConnectorOffsetBackingStore.withOnlyWorkerStore(
            () -> LoggingContext.forTask(id), parts.offsets(), NO_TOPIC);
        Converter ofKeys = internalConverter(true);
        Converter ofValues = internalConverter(false);
        Runnable mayGoOn = () -> { };
        boolean creates = parts.cluster() != null && config.topicCreationEnable() && source.usesTopicCreation();
        return new ExactlyOnceWorkerSourceTask(
            id,
            parts.task((SourceTask) task),
            listener,
            initialState,
            parts.keys(keyConverter),
            parts.values(valueConverter),
            parts.headers(headerConverter),
            transforms,
            parts.producer(),
            creates ? topicAdmin(id) : null,
            creates ? TopicCreationGroup.configuredGroups(source) : null,
            new OffsetStorageReaderImpl(offsets, id.connector(), ofKeys, ofValues),
            new OffsetStorageWriter(offsets, id.connector(), ofKeys, ofValues),
            offsets,
            config,
            state,
            worker.metrics(),
            errors,
            loader,
            Time.SYSTEM,
            retry,
            states,
            source,
            Runnable::run,
            mayGoOn,
            mayGoOn,
            () -> List.of(new LogReporter.Source(id, source, errors)),
            metadata,
            plugins.safeLoaderSwapper());
    }

    private TopicAdmin topicAdmin(ConnectorTaskId id) {
        Map<String, Object> settings = new HashMap<>(parts.cluster());
        settings.put(CommonClientConfigs.CLIENT_ID_CONFIG, "connector-adminclient-" + id);
        return new TopicAdmin(settings);
    }

    private Converter internalConverter(boolean isKey) {
        return plugins.newInternalConverter(
            isKey, JsonConverter.class.getName(), Map.of(JsonConverterConfig.SCHEMAS_ENABLE_CONFIG, "false"));
    }
}
