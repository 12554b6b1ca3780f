package fairlead.plugins;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.types.pojo.ArrowType;
import org.apache.arrow.vector.types.pojo.Field;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.connect.data.Schema;

/**
 * Records as Kafka gets them: the bytes that the connector's own converters have made, with all that a record has
 * beside them. They are one table, whose columns the sink of the other process knows (kafka/sink/encoding.py).
 */
final class HandedRecords implements Handed {
    private static final List<Field> FIELDS = List.of(
        Field.nullable("topic", new ArrowType.Utf8()),
        Field.nullable("key", new ArrowType.Binary()),
        Field.nullable("value", new ArrowType.Binary()),
        Field.nullable("timestamp", new ArrowType.Int(64, true)),
        new Field("headers", BatchRows.HEADERS.getFieldType(), BatchRows.HEADERS.getChildren()),
        Field.nullable("partition", new ArrowType.Int(32, true)));

    private final List<ProducerRecord<byte[], byte[]>> records = new ArrayList<>();

    @Override
    public void add(ProducerRecord<byte[], byte[]> sent) {
        records.add(sent);
    }

    @Override
    public boolean isEmpty() {
        return records.isEmpty();
    }

    @Override
    public void clear() {
        records.clear();
    }

    @Override
    public List<ByteBuffer> encode() {
        if (records.isEmpty()) {
            return List.of();
        }
        try (VectorSchemaRoot table = BatchRows.table(FIELDS, Map.of(), records.size())) {
            for (int row = 0; row < records.size(); row++) {
                ProducerRecord<byte[], byte[]> each = records.get(row);
                BatchRows.put(table.getVector("topic"), row, each.topic(), Schema.STRING_SCHEMA);
                BatchRows.put(table.getVector("key"), row, each.key(), Schema.BYTES_SCHEMA);
                BatchRows.put(table.getVector("value"), row, each.value(), Schema.BYTES_SCHEMA);
                BatchRows.put(table.getVector("timestamp"), row, each.timestamp(), Schema.INT64_SCHEMA);
                BatchRows.putHeaders((ListVector) table.getVector("headers"), row, each.headers());
                BatchRows.put(table.getVector("partition"), row, each.partition(), Schema.INT32_SCHEMA);
            }
            return List.of(BatchRows.stream(table, records.size()));
        }
    }
}
