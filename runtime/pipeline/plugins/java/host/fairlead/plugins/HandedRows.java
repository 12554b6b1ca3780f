package fairlead.plugins;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.storage.Converter;

/** Records as rows with columns: keys and values are not converted. */
final class HandedRows implements Handed {
    private final Held keys = new Held();
    private final Held values = new Held();
    private final List<BatchRows.Record> records = new ArrayList<>();
    private final Set<String> beside;

    /** Begins without records; {@code beside} names the columns for what a record has beside its value. */
    HandedRows(Set<String> beside) {
        this.beside = beside;
    }

    @Override
    public Plugin<Converter> keys(Plugin<Converter> own) {
        return Plugin.wrapInstance(keys, null, "keys");
    }

    @Override
    public Plugin<Converter> values(Plugin<Converter> own) {
        return Plugin.wrapInstance(values, null, "values");
    }

    @Override
    public void add(ProducerRecord<byte[], byte[]> sent) {
        records.add(new BatchRows.Record(sent, keys.take(), values.take()));
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
        return BatchRows.encode(records, beside);
    }

    /** Keeps a key or a value as it is, until the producer takes it: on the same thread, right after this. */
    private static final class Held implements Converter {
        private SchemaAndValue held;

        SchemaAndValue take() {
            SchemaAndValue taken = held;
            held = null;
            return taken;
        }

        @Override
        public void configure(Map<String, ?> properties, boolean isKey) {
        }

        @Override
        public byte[] fromConnectData(String topic, Schema schema, Object value) {
            held = new SchemaAndValue(schema, value);
            return new byte[0];
        }

        @Override
        public SchemaAndValue toConnectData(String topic, byte[] value) {
            throw new UnsupportedOperationException("nothing is read");
        }
    }
}
