package fairlead.plugins;

import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import java.util.Set;
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
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.OffsetBackingStore;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Hands the records of a source task to the other process. To the task it is a producer: what it sends in one
 * transaction is a batch. The end of the transaction waits until the other process has committed that batch, so the
 * task is told of its records after that, and polls no more before.
 */
final class HandOver implements BatchTask.Parts {
    private static final long UNKNOWN = -1;

    private final Link link;
    private final ConnectorTaskId id;
    private final BatchOffsets offsets;
    private final Handed records;
    private final Map<String, Object> cluster;
    private long number;
    /** Completed once the batch with that number is committed, or will never be; null: there is none. */
    private CompletableFuture<Boolean> batch;
    private boolean closed;

    /**
     * Begins without a batch. A {@code cluster} of Kafka gets the records as they are, and has its topics created by a
     * client with these settings; null: they become rows, with the columns {@code beside} those of their values.
     */
    HandOver(Link link, ConnectorTaskId id, Map<String, String> cluster, Set<String> beside) {
        this.link = link;
        this.id = id;
        this.cluster = cluster == null ? null : Map.copyOf(cluster);
        records = cluster == null ? new HandedRows(beside) : new HandedRecords();
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
        int partition = record.partition() == null ? 0 : record.partition();
        TopicPartition place = new TopicPartition(record.topic(), partition);
        callback.onCompletion(new RecordMetadata(place, UNKNOWN, 0, UNKNOWN, 0, 0), null);
    }

    private void commit() throws InterruptedException {
        List<List<String>> changed = offsets.pending();
        if (records.isEmpty() && changed.isEmpty()) {
            return;
        }
        List<ByteBuffer> tables = records.encode();
        CompletableFuture<Boolean> answer = open();
        link.tell(
            "batch",
            Map.of(
                "connector", id.connector(),
                "task", id.task(),
                "number", number,
                "offsets", changed,
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
        offsets.commit();
    }

    private synchronized CompletableFuture<Boolean> open() {
        number++;
        batch = new CompletableFuture<>();
        if (closed) {
            batch.complete(false);
        }
        return batch;
    }

    /** Hears that a batch is committed, and its rows are where they belong. */
    synchronized void confirm(long committed) {
        if (batch != null && committed == number) {
            batch.complete(true);
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
