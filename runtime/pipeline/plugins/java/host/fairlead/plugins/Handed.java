package fairlead.plugins;

import java.nio.ByteBuffer;
import java.util.List;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.internals.Plugin;
import org.apache.kafka.connect.storage.Converter;
import org.apache.kafka.connect.storage.HeaderConverter;

/** The records of the batch at work, in the form that the other process takes. */
interface Handed {
    /** Returns what converts keys; {@code own} is the converter of the connector's config. */
    default Plugin<Converter> keys(Plugin<Converter> own) {
        return own;
    }

    /** Returns what converts values, likewise. */
    default Plugin<Converter> values(Plugin<Converter> own) {
        return own;
    }

    /** Returns what converts headers, likewise. */
    default Plugin<HeaderConverter> headers(Plugin<HeaderConverter> own) {
        return own;
    }

    /** Adds a record whose key and value were converted last. */
    void add(ProducerRecord<byte[], byte[]> sent);

    boolean isEmpty();

    void clear();

    /** Returns about how many bytes of memory they take here; 0: the other process has them. */
    default long size() {
        return 0;
    }

    /** Returns them as streams of Arrow; throws a DataException for what no column can hold. */
    List<ByteBuffer> encode();
}
