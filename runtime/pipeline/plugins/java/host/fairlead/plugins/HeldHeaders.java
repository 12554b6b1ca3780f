package fairlead.plugins;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.storage.HeaderConverter;

/** Keeps the headers of a record as they are, until the producer takes it: their bytes are their places. */
final class HeldHeaders implements HeaderConverter {
    private final List<SchemaAndValue> held = new ArrayList<>();

    ConnectHeaders take(Headers sent) {
        ConnectHeaders taken = new ConnectHeaders();
        for (Header each : sent) {
            taken.add(each.key(), held.get(ByteBuffer.wrap(each.value()).getInt()));
        }
        held.clear();
        return taken;
    }

    @Override
    public byte[] fromConnectHeader(String topic, String name, Schema schema, Object value) {
        held.add(new SchemaAndValue(schema, value));
        return ByteBuffer.allocate(Integer.BYTES).putInt(held.size() - 1).array();
    }

    @Override
    public SchemaAndValue toConnectHeader(String topic, String name, byte[] value) {
        throw new UnsupportedOperationException("nothing is read");
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
