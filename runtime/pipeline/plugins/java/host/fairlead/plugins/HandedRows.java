package fairlead.plugins;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.internals.Plugin;
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
}
