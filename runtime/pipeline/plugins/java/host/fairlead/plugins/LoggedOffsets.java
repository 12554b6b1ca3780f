package fairlead.plugins;

import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import java.util.concurrent.TimeoutException;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.storage.OffsetBackingStore;
import org.apache.kafka.connect.util.Callback;

/**
 * The offsets that the log of the other process has, read anew each time.
 *
 * <p>Keys and values are those of Connect's converter, which is JSON; a key has the connector's name.
 */
class LoggedOffsets implements OffsetBackingStore {
    private static final long ASK_MS = 30_000;

    private final Link link;

    LoggedOffsets(Link link) {
        this.link = link;
    }

    @Override
    public Future<Map<ByteBuffer, ByteBuffer>> get(Collection<ByteBuffer> keys) {
        Map<ByteBuffer, ByteBuffer> found = new HashMap<>();
        if (!keys.isEmpty()) {
            List<ByteBuffer> all = List.copyOf(keys);
            JsonNode logged = ask(all.stream().map(LoggedOffsets::text).toList());
            for (int each = 0; each < all.size(); each++) {
                if (!logged.get(each).isNull()) {
                    found.put(all.get(each), bytes(logged.get(each).asText()));
                }
            }
        }
        return CompletableFuture.completedFuture(found);
    }

    private JsonNode ask(List<String> partitions) {
        try {
            JsonNode logged = link.ask("offsets", Map.of("partitions", partitions), ASK_MS);
            if (logged.isArray()) {
                return logged;
            }
        } catch (IOException | TimeoutException silent) {
            throw new ConnectException("the offsets in the log could not be read", silent);
        }
        throw new ConnectException("the offsets in the log cannot be read now");
    }

    static String text(ByteBuffer bytes) {
        return StandardCharsets.UTF_8.decode(bytes.duplicate()).toString();
    }

    static ByteBuffer bytes(String text) {
        return ByteBuffer.wrap(text.getBytes(StandardCharsets.UTF_8));
    }

    @Override
    public Future<Void> set(Map<ByteBuffer, ByteBuffer> values, Callback<Void> callback) {
        throw new UnsupportedOperationException("offsets change with a batch");
    }

    @Override
    public Set<Map<String, Object>> connectorPartitions(String name) {
        return Set.of(); // the other process knows them, and changes them
    }

    @Override
    public void start() {
    }

    @Override
    public void stop() {
    }

    @Override
    public void configure(WorkerConfig config) {
    }
}
