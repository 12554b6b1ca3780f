package fairlead.plugins;

import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.storage.Converter;

/** Keeps a key or a value as it is, until the producer takes it: on the same thread, right after this. */
final class Held implements Converter {
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
