package fairlead.plugins;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;

/** A record of a source as it is, for a sink in the same JVM: no converter has written or read it. */
record HeldRecord(String topic, long time, SchemaAndValue key, SchemaAndValue value, ConnectHeaders headers) {
    private static final int OBJECT_BYTES = 24;

    /** Returns about how many bytes of memory it takes. */
    long size() {
        long size = OBJECT_BYTES + size(key.value()) + size(value.value());
        for (Header each : headers) {
            size += each.key().length() + size(each.value());
        }
        return size;
    }

    private static long size(Object value) {
        long size = OBJECT_BYTES;
        if (value instanceof String text) {
            size += text.length();
        } else if (value instanceof byte[] bytes) {
            size += bytes.length;
        } else if (value instanceof ByteBuffer bytes) {
            size += bytes.remaining();
        } else if (value instanceof Struct struct) {
            for (Field each : struct.schema().fields()) {
                size += size(struct.getWithoutDefault(each.name()));
            }
        } else if (value instanceof List<?> items) {
            size += items.stream().mapToLong(HeldRecord::size).sum();
        } else if (value instanceof Map<?, ?> pairs) {
            for (Map.Entry<?, ?> each : pairs.entrySet()) {
                size += size(each.getKey()) + size(each.getValue());
            }
        }
        return size;
    }

    /** Returns it as one that a table of Arrow can have: the headers as texts. */
    BatchRows.Record asRow() {
        RecordHeaders texts = new RecordHeaders();
        headers.forEach(each -> texts.add(each.key(), bytes(each)));
        return new BatchRows.Record(new ProducerRecord<>(topic, null, time, null, null, texts), key, value);
    }

    /** Returns it with texts as key and value, for what no column can hold. */
    HeldRecord asTexts() {
        return new HeldRecord(topic, time, text(key), text(value), headers);
    }

    private static SchemaAndValue text(SchemaAndValue data) {
        return data.value() == null
            ? SchemaAndValue.NULL
            : new SchemaAndValue(Schema.STRING_SCHEMA, data.value().toString());
    }

    private static byte[] bytes(Header header) {
        if (header.value() == null || header.value() instanceof byte[]) {
            return (byte[]) header.value();
        }
        return header.value().toString().getBytes(StandardCharsets.UTF_8);
    }

    /** Whether there is nothing, not even a schema, as in a tombstone. */
    static boolean isNothing(SchemaAndValue data) {
        return data.schema() == null && data.value() == null;
    }
}
