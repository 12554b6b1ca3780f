package fairlead.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.clients.producer.Callback;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;

/**
 * The records of the batch at work, of which the task hears where they were written: by the callbacks that it gave with
 * them, which are called once that is known, and before the task is told that they count.
 */
final class SentRecords {
    private static final long UNKNOWN = -1;

    private final List<Sent> records = new ArrayList<>();
    /** Runs of records: how many, their partition, and the offset of the first one, or -1; null: none is known. */
    private JsonNode places;

    /** Returns whether a task does anything with the places of its records. */
    static boolean isHeardBy(SourceTask task) {
        try {
            return task.getClass()
                .getMethod("commitRecord", SourceRecord.class, RecordMetadata.class)
                .getDeclaringClass() != SourceTask.class;
        } catch (NoSuchMethodException older) {
            return false;
        }
    }

    void add(ProducerRecord<byte[], byte[]> record, Callback callback) {
        Long time = record.timestamp();
        records.add(new Sent(
            record.topic(), record.partition(), time == null ? UNKNOWN : time,
            size(record.key()), size(record.value()), callback));
    }

    /** Hears where they are. */
    synchronized void placed(JsonNode runs) {
        places = runs.isEmpty() ? null : runs;
    }

    /** Tells the task where each record is, and keeps none. */
    synchronized void tell() {
        int next = 0;
        if (places != null) {
            for (JsonNode run : places) {
                long offset = run.get(2).asLong();
                for (int each = 0; each < run.get(0).asInt(); each++) {
                    records.get(next++).tell(Math.max(run.get(1).asInt(), 0), offset == UNKNOWN ? UNKNOWN : offset + each);
                }
            }
        }
        for (Sent each : records.subList(next, records.size())) {
            each.tell(each.partition == null ? 0 : each.partition, UNKNOWN);
        }
        records.clear();
        places = null;
    }

    private static int size(byte[] bytes) {
        return bytes == null ? -1 : bytes.length; // as Kafka's own producer says
    }

    private record Sent(
        String topic, Integer partition, long time, int keySize, int valueSize, Callback callback) {
        void tell(int written, long offset) {
            callback.onCompletion(
                new RecordMetadata(new TopicPartition(topic, written), offset, 0, time, keySize, valueSize), null);
        }
    }
}
