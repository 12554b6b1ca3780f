package fairlead.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.arrow.memory.BufferAllocator;
import org.apache.arrow.memory.RootAllocator;
import org.apache.arrow.vector.BigIntVector;
import org.apache.arrow.vector.IntVector;
import org.apache.arrow.vector.VarBinaryVector;
import org.apache.arrow.vector.VarCharVector;
import org.apache.arrow.vector.VectorSchemaRoot;
import org.apache.arrow.vector.complex.ListVector;
import org.apache.arrow.vector.complex.StructVector;
import org.apache.arrow.vector.ipc.ArrowStreamReader;
import org.apache.arrow.vector.ipc.ArrowStreamWriter;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.Header;

/**
 * A batch of rows of the other process, as the records that a consumer of Kafka's would have.
 *
 * <p>Its columns {@code _topic}, {@code _partition} and {@code _offset} are those of each record; {@code _timestamp}
 * (milliseconds since 1970), {@code _headers} and {@code _key} may be there. With a schema all other columns are the
 * value, or {@code _value} is if it is the only one; key and value of a record are the place of its row until they are
 * converted. Without, its columns {@code _key} and {@code _value} are the bytes of the record; or {@code _value} is the
 * place of a record among those that a source in this JVM holds.
 */
final class FedBatch implements AutoCloseable {
    private static final Set<String> BESIDE = Set.of("_key", "_timestamp", "_headers");

    /** A record that knows its row. */
    static final class Row extends ConsumerRecord<byte[], byte[]> {
        final FedBatch batch;
        private final int row;

        private Row(FedBatch batch, int row, long time, byte[] key, byte[] value, Headers headers) {
            super(
                batch.place(row).topic(), batch.place(row).partition(), batch.offset(row),
                time, TimestampType.CREATE_TIME, size(key), size(value), key, value, headers, Optional.empty());
            this.batch = batch;
            this.row = row;
        }

        /** Returns its row as a stream of Arrow. */
        ByteBuffer stream() {
            return batch.stream(row);
        }

        private static int size(byte[] bytes) {
            return bytes == null ? NULL_SIZE : bytes.length;
        }
    }

    private static final BufferAllocator MEMORY = new RootAllocator();

    final long number;
    final int rows;
    /** How many bytes it takes. */
    final long size;
    /** The offset behind its last record, for each partition that it has records of. */
    final Map<TopicPartition, Long> ends = new LinkedHashMap<>();
    /** The first row that the task may still have to poll. */
    int next;
    /** Whether all its records have been put. */
    boolean isPut;
    private TopicPartition[] places;
    private long[] offsets;
    private final RowValues keys;
    private final RowValues values;
    private final ArrowStreamReader reader;
    private VectorSchemaRoot table;
    /** The records that it has some of; null: its table has all. */
    private List<HeldRecord> held;

    /**
     * Takes what the other process has put; a schema that it has put before may be known. It may be of records that are
     * {@code held}, and take about so many bytes.
     */
    FedBatch(JsonNode with, RowSchemas schemas, List<HeldRecord> held, long bytes) throws IOException {
        this.held = held;
        number = with.get("number").asLong();
        byte[] data = with.get("data").binaryValue();
        size = held == null ? data.length : bytes;
        reader = new ArrowStreamReader(new ByteArrayInputStream(data), MEMORY);
        reader.loadNextBatch();
        table = reader.getVectorSchemaRoot();
        rows = table.getRowCount();
        Schema key = schemas.of(with.get("key"));
        Schema value = schemas.of(with.get("value"));
        keys = key == null ? null : new RowValues(key, "_key");
        values = value == null ? null : new RowValues(value, with.get("lone").asBoolean() ? "_value" : null);
        places = new TopicPartition[rows];
        offsets = new long[rows];
        locate();
    }

    private void locate() {
        VarCharVector topics = (VarCharVector) table.getVector("_topic");
        IntVector partitions = (IntVector) table.getVector("_partition");
        BigIntVector all = (BigIntVector) table.getVector("_offset");
        for (int row = 0; row < rows; row++) {
            TopicPartition last = row == 0 ? null : places[row - 1];
            String topic = new String(topics.get(row), StandardCharsets.UTF_8);
            boolean isSame = last != null && last.partition() == partitions.get(row) && last.topic().equals(topic);
            places[row] = isSame ? last : new TopicPartition(topic, partitions.get(row));
            offsets[row] = all.get(row);
            ends.merge(places[row], offsets[row] + 1, Math::max);
        }
    }

    TopicPartition place(int row) {
        return places[row];
    }

    long offset(int row) {
        return offsets[row];
    }

    /** Whether its rows are still here. */
    boolean isHere() {
        return table != null;
    }

    Row record(int row) {
        byte[] place = ByteBuffer.allocate(Long.BYTES + Integer.BYTES).putLong(number).putInt(row).array();
        if (held != null) {
            HeldRecord each = held(row);
            byte[] ofKey = HeldRecord.isNothing(each.key()) ? null : place;
            byte[] ofValue = HeldRecord.isNothing(each.value()) ? null : place;
            return new Row(this, row, each.time(), ofKey, ofValue, places(each, place));
        }
        BigIntVector times = (BigIntVector) table.getVector("_timestamp");
        long time = times == null || times.isNull(row) ? ConsumerRecord.NO_TIMESTAMP : times.get(row);
        boolean isRaw = values == null;
        byte[] key = isRaw ? bytes("_key", row) : keys == null ? null : place;
        return new Row(this, row, time, key, isRaw ? bytes("_value", row) : place, headers(row));
    }

    private HeldRecord held(int row) {
        return held.get((int) ((BigIntVector) table.getVector("_value")).get(row));
    }

    /** Returns headers whose bytes are the place of the row and their own. */
    private static Headers places(HeldRecord record, byte[] place) {
        Headers headers = new RecordHeaders();
        int at = 0;
        for (Header each : record.headers()) {
            byte[] own = ByteBuffer.allocate(place.length + Integer.BYTES).put(place).putInt(at++).array();
            headers.add(each.key(), own);
        }
        return headers;
    }

    /** Returns a header of a record that is held. */
    SchemaAndValue header(int row, int at) {
        int number = 0;
        for (Header each : held(row).headers()) {
            if (number++ == at) {
                return new SchemaAndValue(each.schema(), each.value());
            }
        }
        throw new IllegalArgumentException("a record has no header " + at);
    }

    private byte[] bytes(String name, int row) {
        VarBinaryVector column = (VarBinaryVector) table.getVector(name);
        return column == null || column.isNull(row) ? null : column.get(row);
    }

    private Headers headers(int row) {
        Headers headers = new RecordHeaders();
        ListVector lists = (ListVector) table.getVector("_headers");
        if (lists != null && !lists.isNull(row)) {
            StructVector pairs = (StructVector) lists.getDataVector();
            VarCharVector names = (VarCharVector) pairs.getChild("key");
            VarBinaryVector texts = (VarBinaryVector) pairs.getChild("value");
            for (int at = lists.getElementStartIndex(row); at < lists.getElementEndIndex(row); at++) {
                byte[] text = texts.isNull(at) ? null : texts.get(at);
                headers.add(new String(names.get(at), StandardCharsets.UTF_8), text);
            }
        }
        return headers;
    }

    SchemaAndValue key(int row) {
        return held != null ? held(row).key() : new SchemaAndValue(keys.schema(), keys.read(table, row));
    }

    /** Returns the value; a record with a key whose columns are all null has none, as a tombstone. */
    SchemaAndValue value(int row) {
        if (held != null) {
            return held(row).value();
        }
        boolean isNothing = keys != null && values.isNull(table, row);
        return isNothing ? SchemaAndValue.NULL : new SchemaAndValue(values.schema(), values.read(table, row));
    }

    private ByteBuffer stream(int row) {
        if (held != null) {
            HeldRecord each = held(row);
            try {
                return BatchRows.encode(List.of(each.asRow()), BESIDE).get(0);
            } catch (DataException odd) {
                return BatchRows.encode(List.of(each.asTexts().asRow()), BESIDE).get(0);
            }
        }
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        try (VectorSchemaRoot slice = table.slice(row, 1);
                ArrowStreamWriter writer = new ArrowStreamWriter(slice, null, Channels.newChannel(bytes))) {
            writer.start();
            writer.writeBatch();
            writer.end();
        } catch (IOException impossible) {
            throw new IllegalStateException(impossible);
        }
        return ByteBuffer.wrap(bytes.toByteArray());
    }

    /** Forgets its rows; where they end is still known. */
    @Override
    public void close() {
        if (table != null) {
            table = null;
            places = null;
            offsets = null;
            held = null;
            try {
                reader.close();
            } catch (IOException impossible) {
                throw new IllegalStateException(impossible);
            }
        }
    }
}
