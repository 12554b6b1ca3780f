package fairlead.plugins;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;

/**
 * Records that stay here, for a sink task in this JVM: keys, values and headers are not converted, so nothing of them
 * is lost. The other process gets the topic of each, and its place in the batch.
 */
final class HeldRecords implements Handed {
    private static final List<Field> FIELDS = List.of(
        Field.nullable("_topic", new ArrowType.Utf8()), Field.nullable("_value", new ArrowType.Int(64, true)));

    private final Held keys = new Held();
    private final Held values = new Held();
    private final HeldHeaders headers = new HeldHeaders();
    private List<HeldRecord> records = new ArrayList<>();
    private long size;

    @Override
    public Plugin<Converter> keys(Plugin<Converter> own) {
        return Plugin.wrapInstance(keys, null, "keys");
    }

    @Override
    public Plugin<Converter> values(Plugin<Converter> own) {
        return Plugin.wrapInstance(values, null, "values");
    }

    @Override
    public Plugin<HeaderConverter> headers(Plugin<HeaderConverter> own) {
        return Plugin.wrapInstance(headers, null, "headers");
    }

    @Override
    public void add(ProducerRecord<byte[], byte[]> sent) {
        long time = sent.timestamp() == null ? System.currentTimeMillis() : sent.timestamp(); // as a producer does
        HeldRecord record =
            new HeldRecord(sent.topic(), time, keys.take(), values.take(), headers.take(sent.headers()));
        records.add(record);
        size += record.size();
    }

    /** Returns the records, which are kept here until they are cleared. */
    List<HeldRecord> all() {
        return records;
    }

    @Override
    public long size() {
        return size;
    }

    @Override
    public boolean isEmpty() {
        return records.isEmpty();
    }

    @Override
    public void clear() {
        records = new ArrayList<>(); // the sink may have the former ones
        size = 0;
    }

    @Override
    public List<ByteBuffer> encode() {
        if (records.isEmpty()) {
            return List.of();
        }
        try (VectorSchemaRoot table = BatchRows.table(FIELDS, Map.of(), records.size())) {
            for (int row = 0; row < records.size(); row++) {
                BatchRows.put(table.getVector("_topic"), row, records.get(row).topic(), Schema.STRING_SCHEMA);
                BatchRows.put(table.getVector("_value"), row, (long) row, Schema.INT64_SCHEMA);
            }
            return List.of(BatchRows.stream(table, records.size()));
        }
    }
}
