package org.apache.kafka.connect.runtime;

import java.lang.reflect.Field;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.connector.Connector;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.runtime.errors.ErrorHandlingMetrics;
import org.apache.kafka.connect.runtime.errors.ErrorReporter;
import org.apache.kafka.connect.runtime.errors.LogReporter;
import org.apache.kafka.connect.runtime.errors.RetryWithToleranceOperator;
import org.apache.kafka.connect.runtime.errors.WorkerErrantRecordReporter;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.sink.SinkTask;
import org.apache.kafka.connect.sink.SinkTaskContext;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Starts a sink task of Connect's with another consumer than one of Kafka's. So what it puts, when it asks the plugin
 * for offsets, and what it does with these, are Connect's own.
 *
 * <p>It is in Connect's package, since its classes are seen from there alone.
 */
public final class FeedTask extends Worker.TaskBuilder<ConsumerRecord<byte[], byte[]>, SinkRecord> {
    /** What a task is given instead of what is Kafka's. */
    public interface Parts {
        /** Has the records; what is committed to it counts. */
        Consumer<byte[], byte[]> consumer();

        /** Converts keys; or returns the converter of the task's config, which is given. */
        Converter keys(Converter own);

        /** Converts values; or returns the converter of the task's config, which is given. */
        Converter values(Converter own);

        /** Converts headers; or returns the converter of the task's config, which is given. */
        HeaderConverter headers(HeaderConverter own);

        /** Gets what has the task ask the plugin for offsets soon; it is for the task's own thread. */
        void setFlush(Runnable flush);

        /** Hears of records that fail. */
        ErrorReporter<ConsumerRecord<byte[], byte[]>> errors();

        /** Whether the plugin may report records that it cannot write, whatever the config says. */
        boolean keepsErrors();
    }

    private final Worker worker;
    private final Plugins plugins;
    private final WorkerConfig config;
    private final AbstractHerder herder;
    private final Parts parts;

    private FeedTask(
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
        this.herder = herder;
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
        FeedTask builder = new FeedTask(worker, id, state, herder, plugins, config, parts);
        TaskStart.with(builder, worker, id, state, connector, task, herder);
    }

    @Override
    WorkerTask<ConsumerRecord<byte[], byte[]>, SinkRecord> doBuild(
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
        RetryWithToleranceOperator<ConsumerRecord<byte[], byte[]>> retry,
        TransformationChain<ConsumerRecord<byte[], byte[]>, SinkRecord> transforms,
        ErrorHandlingMetrics errors,
        Class<? extends Connector> connectorClass,
        TaskPluginsMetadata metadata) {
        SinkConnectorConfig sink = new SinkConnectorConfig(plugins, connector.originalsStrings());
        Plugin<Converter> keys = Plugin.wrapInstance(parts.keys(keyConverter.get()), null, "keys");
        Plugin<Converter> values = Plugin.wrapInstance(parts.values(valueConverter.get()), null, "values");
        Plugin<HeaderConverter> headers = Plugin.wrapInstance(parts.headers(headerConverter.get()), null, "headers");
        WorkerErrantRecordReporter reporter = parts.keepsErrors() || sink.enableErrantRecordReporter()
            ? new WorkerErrantRecordReporter(retry, keys.get(), values.get(), headers.get())
            : null;
        WorkerSinkTask made = new WorkerSinkTask(
            id,
            (SinkTask) task,
            listener,
            initialState,
            config,
            state,
            worker.metrics(),
            keys,
            values,
            errors,
            headers,
            transforms,
            parts.consumer(),
            loader,
            Time.SYSTEM,
            retry,
            reporter,
            herder.statusBackingStore(),
            () -> List.of(new LogReporter.Sink(id, sink, errors), parts.errors()),
            metadata,
            plugins.safeLoaderSwapper());
        parts.setFlush(() -> flush(made));
        return made;
    }

    private static void flush(WorkerSinkTask task) {
        try {
            Field context = WorkerSinkTask.class.getDeclaredField("context");
            context.setAccessible(true);
            ((SinkTaskContext) context.get(task)).requestCommit();
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this version of Connect is not supported", error);
        }
    }
}
