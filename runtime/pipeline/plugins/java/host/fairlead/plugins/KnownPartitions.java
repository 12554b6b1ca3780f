package fairlead.plugins;

import java.nio.ByteBuffer;
import java.util.Collection;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Future;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.storage.OffsetBackingStore;
import org.apache.kafka.connect.util.Callback;

/**
 * Offsets of one connector that the other process is about to change in its log: the partitions are known, and what is
 * written here is written there once the connector has agreed.
 */
record KnownPartitions(Set<Map<String, Object>> partitions) implements OffsetBackingStore {
    @Override
    public Set<Map<String, Object>> connectorPartitions(String name) {
        return partitions;
    }

    @Override
    public Future<Map<ByteBuffer, ByteBuffer>> get(Collection<ByteBuffer> keys) {
        return CompletableFuture.completedFuture(Map.of());
    }

    @Override
    public Future<Void> set(Map<ByteBuffer, ByteBuffer> values, Callback<Void> callback) {
        callback.onCompletion(null, null);
        return CompletableFuture.completedFuture(null);
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
