package fairlead.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.runtime.BatchTask;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.storage.OffsetBackingStore;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Hands the records of a source task to the other process. To the task it is a producer: what it sends in one
 * transaction is a batch. The end of the transaction waits until the other process has committed that batch, so the
 * task is told of its records after that, and polls no more before.
 *
 * <p>A sink that is a plugin may hold many records before it agrees to any. Then the end waits only until the sink has
 * been given them, and the task is told of them once they are committed. In the same JVM they are held here for it.
 */
final class HandOver implements BatchTask.Parts, CountedTask.Last {
    private static final long UNKNOWN = -1;

    private final Link link;
    private final ConnectorTaskId id;
    private final BatchOffsets offsets;
    private final Handed records;
    private final Map<String, Object> cluster;
    private final boolean isPaired;
    /** The records whose places the task hears; null: it does not. */
    private volatile SentRecords sent;
    /** The task that hears later of its records; null: it does not. */
    private volatile CountedTask counted;
    private volatile long number;
    private volatile long size;
    /** Completed once the batch with that number need not be waited for, or will never be committed; null: none is. */
    private CompletableFuture<Boolean> batch;
    private boolean closed;

    /**
     * Begins without a batch. A {@code cluster} of Kafka gets the records, and has its topics created by a client with
     * these settings; null: there is none. One that is paired has a sink in some plugin host.
     */
    HandOver(Link link, ConnectorTaskId id, Map<String, String> cluster, Handed records, boolean isPaired) {
        this.link = link;
        this.id = id;
        this.cluster = cluster == null ? null : Map.copyOf(cluster);
        this.records = records;
        this.isPaired = isPaired;
        offsets = new BatchOffsets(link);
    }

    @Override
    public Plugin<Converter> keys(Plugin<Converter> own) {
        return records.keys(own);
    }

    @Override
    public Plugin<Converter> values(Plugin<Converter> own) {
        return records.values(own);
    }

    @Override
    public Plugin<HeaderConverter> headers(Plugin<HeaderConverter> own) {
        return records.headers(own);
    }

    @Override
    public SourceTask task(SourceTask own) {
        sent = cluster != null && !isPaired && SentRecords.isHeardBy(own) ? new SentRecords() : null;
        counted = isPaired ? new CountedTask(own, id, this) : null;
        return counted == null ? own : counted;
    }

    @Override
    public long number() {
        return number;
    }

    @Override
    public long size() {
        return size;
    }

    @Override
    public Map<String, Object> cluster() {
        return cluster;
    }

    @Override
    public OffsetBackingStore offsets() {
        return offsets;
    }

    /** Returns what a task takes for a producer; each version of Kafka adds methods that nobody here calls. */
    @Override
    @SuppressWarnings("unchecked")
    public Producer<byte[], byte[]> producer() {
        return (Producer<byte[], byte[]>) Proxy.newProxyInstance(
            Producer.class.getClassLoader(), new Class<?>[] {Producer.class}, (proxy, method, arguments) -> {
                switch (method.getName()) {
                    case "send":
                        send((ProducerRecord<byte[], byte[]>) arguments[0], (Callback) arguments[1]);
                        return null;
                    case "commitTransaction":
                        commit();
                        return null;
                    case "abortTransaction":
                        records.clear();
                        offsets.abort();
                        tellSent();
                        return null;
                    case "close":
                        close();
                        return null;
                    case "initTransactions", "beginTransaction":
                        return null;
                    default:
                        throw new UnsupportedOperationException(method.getName());
                }
            });
    }

    private void send(ProducerRecord<byte[], byte[]> record, Callback callback) {
        records.add(record);
        if (sent != null) {
            sent.add(record, callback);
            return;
        }
        int partition = record.partition() == null ? 0 : record.partition();
        TopicPartition place = new TopicPartition(record.topic(), partition);
        callback.onCompletion(new RecordMetadata(place, UNKNOWN, 0, UNKNOWN, 0, 0), null);
    }

    private void commit() throws InterruptedException {
        List<List<String>> changed = offsets.pending();
        if (records.isEmpty() && changed.isEmpty()) {
            size = 0;
            return;
        }
        List<ByteBuffer> tables = records.encode();
        size = records.size() + tables.stream().mapToLong(ByteBuffer::remaining).sum();
        CompletableFuture<Boolean> answer = open();
        link.tell(
            "batch",
            Map.of(
                "connector", id.connector(),
                "task", id.task(),
                "number", number,
                "offsets", changed,
                "held", records.size(),
                "places", sent != null,
                "sizes", tables.stream().map(ByteBuffer::remaining).toList()),
            tables);
        try {
            if (!answer.get()) {
                throw new ConnectException("task " + id + " ends before its last batch is committed");
            }
        } catch (ExecutionException impossible) {
            throw new IllegalStateException(impossible);
        }
        records.clear();
        tellSent();
        offsets.pass(number);
        if (counted == null) {
            offsets.commit(number);
        }
    }

    /** Returns the records of the batch at work, which are held here. */
    synchronized List<HeldRecord> held(long wanted) {
        if (batch == null || batch.isDone() || wanted != number || !(records instanceof HeldRecords held)) {
            throw new IllegalStateException("batch " + wanted + " of " + id + " is not held here");
        }
        return held.all();
    }

    private synchronized CompletableFuture<Boolean> open() {
        number++;
        batch = new CompletableFuture<>();
        if (closed) {
            batch.complete(false);
        }
        return batch;
    }

    /** Hears that a sink in this JVM has been given a batch. */
    synchronized void pass(long given) {
        if (batch != null && given == number) {
            batch.complete(true);
        }
    }

    private void tellSent() {
        if (sent != null) {
            sent.tell();
        }
    }

    /**
     * Hears that a batch is committed, and its rows are where they belong, and at which places if they are known; so
     * are those before it.
     */
    void confirm(long committed, JsonNode places) {
        if (counted == null) {
            synchronized (this) {
                if (sent != null && committed == number) {
                    sent.placed(places);
                }
            }
            pass(committed);
        } else {
            offsets.commit(committed);
            counted.count(committed);
        }
    }

    /** Gives up the batch at work, and all that follow: the other process takes no more. */
    synchronized void close() {
        closed = true;
        if (batch != null) {
            batch.complete(false);
        }
    }
}
