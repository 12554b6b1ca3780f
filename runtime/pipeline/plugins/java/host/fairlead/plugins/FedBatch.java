package fairlead.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
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

/**
 * A batch of rows of the other process, as the records that a consumer of Kafka's would have.
 *
 * <p>Its columns {@code _topic}, {@code _partition} and {@code _offset} are those of each record; {@code _timestamp}
 * (milliseconds since 1970), {@code _headers} and {@code _key} may be there. With a schema all other columns are the
 * value, or {@code _value} is if it is the only one; key and value of a record are the place of its row until they are
 * converted. Without, its columns {@code _key} and {@code _value} are the bytes of the record.
 */
final class FedBatch implements AutoCloseable {
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

    /** Takes what the other process has put; a schema that it has put before may be known. */
    FedBatch(JsonNode with, RowSchemas schemas) throws IOException {
        number = with.get("number").asLong();
        byte[] data = with.get("data").binaryValue();
        size = data.length;
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
        BigIntVector times = (BigIntVector) table.getVector("_timestamp");
        long time = times == null || times.isNull(row) ? ConsumerRecord.NO_TIMESTAMP : times.get(row);
        boolean isRaw = values == null;
        byte[] place = ByteBuffer.allocate(Long.BYTES + Integer.BYTES).putLong(number).putInt(row).array();
        byte[] key = isRaw ? bytes("_key", row) : keys == null ? null : place;
        return new Row(this, row, time, key, isRaw ? bytes("_value", row) : place, headers(row));
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
        return new SchemaAndValue(keys.schema(), keys.read(table, row));
    }

    /** Returns the value; a record with a key whose columns are all null has none, as a tombstone. */
    SchemaAndValue value(int row) {
        boolean isNothing = keys != null && values.isNull(table, row);
        return isNothing ? SchemaAndValue.NULL : new SchemaAndValue(values.schema(), values.read(table, row));
    }

    private ByteBuffer stream(int row) {
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
            try {
                reader.close();
            } catch (IOException impossible) {
                throw new IllegalStateException(impossible);
            }
        }
    }
}
