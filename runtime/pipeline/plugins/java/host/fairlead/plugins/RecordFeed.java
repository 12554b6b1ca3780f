package fairlead.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationHandler;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetCommitCallback;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.WakeupException;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.runtime.FeedTask;
import org.apache.kafka.connect.runtime.errors.ErrorReporter;
import org.apache.kafka.connect.runtime.errors.ProcessingContext;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Feeds a sink task with rows of the other process. To the task it is a consumer: it polls their records, seeks, and
 * pauses partitions. What the task commits to it are the offsets that the plugin has agreed to; the other process hears
 * which batches they cover, and these count.
 *
 * <p>Batches are kept until they count, so that the task can go back to any record of them. Of more bytes than
 * {@link #MOST_BYTES} the oldest are forgotten first; a task that goes back to them fails, and begins anew at the last
 * batch that counts. As many bytes may wait for partitions that the plugin has paused, while others go on.
 */
final class RecordFeed implements FeedTask.Parts, ErrorReporter<ConsumerRecord<byte[], byte[]>> {
    private static final String MOST_RECORDS = "consumer.override.max.poll.records";
    private static final long MOST_BYTES = 64L << 20;
    /** After how many bytes of records of a source here the plugin is asked for offsets: it keeps what does not count. */
    private static final long FLUSH_BYTES = 16L << 20;
    private static final int NANOS = 1_000_000;

    private final Link link;
    private final ConnectorTaskId id;
    /** Whether the converters of the task's config convert keys and values. */
    private final boolean isRaw;
    private final boolean keepsErrors;
    /** Whether a source in this JVM has the records. */
    private final boolean isHeld;
    /** Whether a source that is a plugin has sent them. */
    private final boolean isPaired;
    /** How many records a poll returns at most. */
    private final int most;
    private final RowSchemas schemas = new RowSchemas();
    /** Those that do not count yet, by their numbers; the first may have forgotten their rows. */
    private final Deque<FedBatch> batches = new ArrayDeque<>();
    /** The offset of the next record to poll, of each partition that is assigned. */
    private final Map<TopicPartition, Long> positions = new LinkedHashMap<>();
    /** The partitions of batches that the task does not know yet, with their first offsets. */
    private final Map<TopicPartition, Long> unassigned = new LinkedHashMap<>();
    private final Map<TopicPartition, Long> committed = new HashMap<>();
    /** Up to where the records of a partition count. */
    private final Map<TopicPartition, Long> gone = new HashMap<>();
    private final Set<TopicPartition> paused = new HashSet<>();
    /** Which of them the other process knows. */
    private Set<TopicPartition> toldPaused = Set.of();
    private ConsumerRebalanceListener listener;
    private boolean wakes;
    private boolean hasEnded;
    /** The number of the last batch that the other process was told to be put. */
    private long put;
    /** How many bytes of records were put since the plugin was asked for offsets on their account. */
    private long unflushed;
    private Runnable flush;

    RecordFeed(Link link, ConnectorTaskId id, JsonNode with, Map<String, String> config) {
        this.link = link;
        this.id = id;
        isRaw = with.get("raw").asBoolean();
        keepsErrors = with.get("errors").asBoolean();
        isHeld = with.path("held").asBoolean();
        isPaired = with.path("paired").asBoolean();
        most = Integer.parseInt(config.getOrDefault(MOST_RECORDS, "500"));
    }

    /** Takes the next batch of the other process, whose records a source here may hold; null: none does. */
    void add(JsonNode with, HandOver source) throws IOException {
        List<HeldRecord> held = source == null ? null : source.held(with.get("batch").asLong());
        FedBatch batch = new FedBatch(with, schemas, held, source == null ? 0 : source.size());
        synchronized (this) {
            if (hasEnded) {
                batch.close();
                return;
            }
            for (int row = 0; row < batch.rows; row++) {
                TopicPartition place = batch.place(row);
                if (!positions.containsKey(place)) {
                    unassigned.putIfAbsent(place, batch.offset(row));
                }
            }
            batches.add(batch);
            notifyAll();
        }
    }

    @Override
    public Converter keys(Converter own) {
        return isRaw ? own : new RowConverter(own, true);
    }

    @Override
    public Converter values(Converter own) {
        return isRaw ? own : new RowConverter(own, false);
    }

    @Override
    public HeaderConverter headers(HeaderConverter own) {
        return isHeld ? new PlaceConverter() : own;
    }

    @Override
    public void setFlush(Runnable runnable) {
        flush = runnable;
    }

    @Override
    public ErrorReporter<ConsumerRecord<byte[], byte[]>> errors() {
        return this;
    }

    @Override
    public boolean keepsErrors() {
        return keepsErrors;
    }

    /** Returns what a task takes for a consumer; each version of Kafka adds methods that nobody here calls. */
    @Override
    @SuppressWarnings("unchecked")
    public Consumer<byte[], byte[]> consumer() {
        InvocationHandler handler = (proxy, method, given) -> answer(method, given);
        return (Consumer<byte[], byte[]>) Proxy.newProxyInstance(
            Consumer.class.getClassLoader(), new Class<?>[] {Consumer.class}, handler);
    }

    @SuppressWarnings("unchecked")
    private Object answer(Method method, Object[] given) throws InterruptedException {
        switch (method.getName()) {
            case "poll":
                return poll((Duration) given[0]);
            case "subscribe":
                listener = (ConsumerRebalanceListener) given[1];
                return null;
            case "assignment":
                return assignment();
            case "position":
                return position((TopicPartition) given[0]);
            case "seek":
                seek((TopicPartition) given[0], (Long) given[1]);
                return null;
            case "pause":
                pause((Collection<TopicPartition>) given[0]);
                return null;
            case "resume":
                resume((Collection<TopicPartition>) given[0]);
                return null;
            case "commitSync":
                commit((Map<TopicPartition, OffsetAndMetadata>) given[0]);
                return null;
            case "commitAsync":
                commit((Map<TopicPartition, OffsetAndMetadata>) given[0]);
                ((OffsetCommitCallback) given[1]).onComplete((Map<TopicPartition, OffsetAndMetadata>) given[0], null);
                return null;
            case "wakeup":
                wake();
                return null;
            case "close":
                close();
                return null;
            case "toString":
                return "the rows for " + id;
            default:
                throw new UnsupportedOperationException(method.getName());
        }
    }

    private ConsumerRecords<byte[], byte[]> poll(Duration timeout) throws InterruptedException {
        long by = System.nanoTime() + timeout.toNanos();
        while (true) {
            assign();
            synchronized (this) {
                if (!unassigned.isEmpty()) {
                    continue; // they came meanwhile
                }
                tellPut();
                forget();
                if (wakes) {
                    wakes = false;
                    throw new WakeupException();
                }
                ConsumerRecords<byte[], byte[]> due = due();
                long left = (by - System.nanoTime()) / NANOS;
                if (!due.isEmpty() || left <= 0) {
                    return due;
                }
                wait(left);
            }
        }
    }

    /** Assigns partitions that are new; a partition is never taken away. */
    private void assign() {
        List<TopicPartition> found;
        synchronized (this) {
            found = List.copyOf(unassigned.keySet());
            positions.putAll(unassigned);
            unassigned.clear();
        }
        if (!found.isEmpty()) {
            listener.onPartitionsAssigned(found);
        }
    }

    /**
     * Tells which batches have been put: whoever polls again has put all that was polled, unless all is paused. What
     * is left of a batch for paused partitions alone waits here; the other process may leave these out from now on.
     */
    private void tellPut() {
        if (!positions.isEmpty() && paused.containsAll(positions.keySet())) {
            return;
        }
        long last = put;
        long waiting = 0;
        for (FedBatch each : batches) {
            each.isPut = isPolled(each, false);
            waiting += each.isPut ? 0 : each.size;
            if (waiting > MOST_BYTES || !isPolled(each, true)) {
                break;
            }
            if (isPaired && each.number > last) {
                unflushed += each.size;
            }
            last = Math.max(last, each.number);
        }
        if (unflushed > FLUSH_BYTES) {
            unflushed = 0;
            flush.run();
        }
        if (last > put) {
            put = last;
            tell("put", Map.of("number", put));
        }
        if (!paused.equals(toldPaused)) {
            toldPaused = Set.copyOf(paused);
            List<Object> places = new ArrayList<>();
            paused.forEach(each -> places.add(List.of(each.topic(), each.partition())));
            tell("paused", Map.of("places", places));
        }
    }

    /** Whether all records of a batch were polled; or all but those of paused partitions. */
    private boolean isPolled(FedBatch batch, boolean butPaused) {
        return batch.ends.entrySet().stream().allMatch(end ->
            positions.getOrDefault(end.getKey(), Long.MIN_VALUE) >= end.getValue()
                || butPaused && paused.contains(end.getKey()));
    }

    /** Forgets rows that were put, if there are too many. */
    private void forget() {
        List<FedBatch> past = batches.stream().filter(each -> each.isHere() && each.isPut).toList();
        long size = past.stream().mapToLong(each -> each.size).sum();
        for (FedBatch each : past) {
            if (size <= MOST_BYTES) {
                return;
            }
            size -= each.size;
            each.close();
        }
    }

    private ConsumerRecords<byte[], byte[]> due() {
        Map<TopicPartition, List<ConsumerRecord<byte[], byte[]>>> found = new LinkedHashMap<>();
        int count = 0;
        for (FedBatch batch : batches) {
            if (batch.ends.entrySet().stream().noneMatch(end -> isDue(end.getKey(), end.getValue() - 1))) {
                continue;
            }
            for (int row = batch.next; row < batch.rows && count < most; row++) {
                TopicPartition place = batch.place(row);
                if (isDue(place, batch.offset(row))) {
                    found.computeIfAbsent(place, each -> new ArrayList<>()).add(batch.record(row));
                    positions.put(place, batch.offset(row) + 1);
                    count++;
                }
                if (row == batch.next && positions.get(place) > batch.offset(row)) {
                    batch.next++;
                }
            }
        }
        Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
        found.keySet().forEach(each -> next.put(each, new OffsetAndMetadata(positions.get(each))));
        return new ConsumerRecords<>(found, next);
    }

    private boolean isDue(TopicPartition place, long offset) {
        Long position = positions.get(place);
        return position != null && offset >= position && !paused.contains(place);
    }

    private synchronized Set<TopicPartition> assignment() {
        return Set.copyOf(positions.keySet());
    }

    private synchronized long position(TopicPartition place) {
        return positions.get(place);
    }

    private synchronized void seek(TopicPartition place, long offset) {
        if (!positions.containsKey(place)) {
            throw new IllegalStateException(place + " is not assigned to " + id);
        }
        if (offset < gone.getOrDefault(place, offset)) {
            throw new ConnectException("the plugin goes back to offset " + offset + " of " + place + ", but "
                + gone.get(place) + " is committed, and no earlier record is kept: set the offsets of the connector");
        }
        boolean isForgotten = batches.stream()
            .anyMatch(each -> !each.isHere() && each.ends.getOrDefault(place, offset) > offset);
        if (isForgotten) {
            throw new ConnectException("the plugin goes back to offset " + offset + " of " + place
                + ", whose record is not kept any more: it is read again, as all that is not committed");
        }
        positions.put(place, offset);
        batches.forEach(each -> {
            each.next = 0;
            each.isPut &= isPolled(each, false);
        });
    }

    private synchronized void pause(Collection<TopicPartition> places) {
        paused.addAll(places);
    }

    private synchronized void resume(Collection<TopicPartition> places) {
        paused.removeAll(places);
    }

    private synchronized void wake() {
        wakes = true;
        notifyAll();
    }

    /** Notes offsets, and tells the last batch all of whose records, and those before, are behind them. */
    private synchronized void commit(Map<TopicPartition, OffsetAndMetadata> offsets) {
        offsets.forEach((place, offset) -> committed.put(place, offset.offset()));
        long last = 0;
        while (!batches.isEmpty() && isCommitted(batches.peek())) {
            FedBatch batch = batches.remove();
            batch.close();
            gone.putAll(batch.ends);
            last = batch.number;
        }
        if (last > 0) {
            tell("counts", Map.of("number", last));
        }
    }

    private boolean isCommitted(FedBatch batch) {
        return batch.ends.entrySet().stream()
            .allMatch(end -> committed.getOrDefault(end.getKey(), Long.MIN_VALUE) >= end.getValue());
    }

    private void tell(String news, Map<String, Object> about) {
        tell(news, about, List.of());
    }

    private void tell(String news, Map<String, Object> about, List<ByteBuffer> parts) {
        Map<String, Object> all = new HashMap<>(about);
        all.put("connector", id.connector());
        all.put("task", id.task());
        link.tell(news, all, parts);
    }

    /** Tells of a record that has failed, with its row. */
    @Override
    public Future<RecordMetadata> report(ProcessingContext<ConsumerRecord<byte[], byte[]>> context) {
        ConsumerRecord<byte[], byte[]> record = context.original();
        Throwable error = context.error();
        Map<String, Object> about = new HashMap<>();
        about.put("topic", record.topic());
        about.put("partition", record.partition());
        about.put("offset", record.offset());
        about.put("stage", context.stage().name());
        about.put("class", context.executingClass().getName());
        about.put("error", error.getClass().getName());
        about.put("message", error.getMessage());
        about.put("trace", trace(error));
        synchronized (this) {
            FedBatch last = batches.peekLast();
            boolean isRow = record instanceof FedBatch.Row;
            about.put("number", isRow ? ((FedBatch.Row) record).batch.number : last == null ? 0 : last.number);
            boolean isHere = record instanceof FedBatch.Row known && known.batch.isHere();
            tell("errant", about, isHere ? List.of(((FedBatch.Row) record).stream()) : List.of());
        }
        return CompletableFuture.completedFuture(null);
    }

    private static String trace(Throwable error) {
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        error.printStackTrace(new PrintStream(bytes, true, StandardCharsets.UTF_8));
        return bytes.toString(StandardCharsets.UTF_8);
    }

    /** Forgets all batches, once the task has ended. */
    @Override
    public synchronized void close() {
        hasEnded = true;
        batches.forEach(FedBatch::close);
    }

    private synchronized FedBatch batch(long number) {
        return batches.stream().filter(each -> each.number == number).findFirst().orElseThrow();
    }

    /** Converts headers of records that a source here holds: they are places. */
    private final class PlaceConverter implements HeaderConverter {
        @Override
        public SchemaAndValue toConnectHeader(String topic, String name, byte[] value) {
            ByteBuffer place = ByteBuffer.wrap(value);
            return batch(place.getLong()).header(place.getInt(), place.getInt());
        }

        @Override
        public byte[] fromConnectHeader(String topic, String name, Schema schema, Object value) {
            return value == null ? null : value.toString().getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public ConfigDef config() {
            return new ConfigDef();
        }

        @Override
        public void configure(Map<String, ?> properties) {
        }

        @Override
        public void close() {
        }
    }

    /** Converts what is the place of a row; all else by the converter of the task's config. */
    private final class RowConverter implements Converter {
        private final Converter own;
        private final boolean isKey;

        RowConverter(Converter own, boolean isKey) {
            this.own = own;
            this.isKey = isKey;
        }

        @Override
        public void configure(Map<String, ?> properties, boolean key) {
        }

        @Override
        public byte[] fromConnectData(String topic, Schema schema, Object value) {
            return own.fromConnectData(topic, schema, value);
        }

        @Override
        public SchemaAndValue toConnectData(String topic, byte[] value) {
            if (value == null) {
                return SchemaAndValue.NULL;
            }
            ByteBuffer place = ByteBuffer.wrap(value);
            FedBatch batch = batch(place.getLong());
            int row = place.getInt();
            return isKey ? batch.key(row) : batch.value(row);
        }

        @Override
        public SchemaAndValue toConnectData(String topic, Headers headers, byte[] value) {
            return toConnectData(topic, value);
        }
    }
}
