package fairlead.plugins;

import java.nio.ByteBuffer;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import org.apache.kafka.connect.util.Callback;

/**
 * The offsets of one task: those that its batches set, and for all other partitions those of the log.
 *
 * <p>What a task reads is what counts at that moment. A plugin may read its own offsets again and again, to tell its
 * source how far that may forget. So what a batch has set is read from the moment on at which it is committed.
 */
final class BatchOffsets extends LoggedOffsets {
    private record Changes(long batch, Map<ByteBuffer, Optional<ByteBuffer>> offsets) {
    }

    /** What the batches of this task have set; empty for an offset that was removed. */
    private final Map<ByteBuffer, Optional<ByteBuffer>> committed = new ConcurrentHashMap<>();
    /** What batches are to set that do not count yet, in their order. */
    private final Deque<Changes> passed = new ArrayDeque<>();
    /** The number of the last batch that is committed, as those before it. */
    private long last;
    /** What the batch at work is to set. */
    private final Map<ByteBuffer, Optional<ByteBuffer>> pending = new LinkedHashMap<>();

    BatchOffsets(Link link) {
        super(link);
    }

    /** Returns the offsets that the batch at work is to set: pairs of a partition and an offset, or null. */
    synchronized List<List<String>> pending() {
        List<List<String>> pairs = new ArrayList<>();
        pending.forEach((partition, offset) -> {
            List<String> pair = new ArrayList<>(); // List.of takes no null
            pair.add(text(partition));
            pair.add(offset.map(LoggedOffsets::text).orElse(null));
            pairs.add(pair);
        });
        return pairs;
    }

    /** Notes that the batch at work has that number, and that there is another one from now on. */
    synchronized void pass(long batch) {
        passed.add(new Changes(batch, Map.copyOf(pending)));
        pending.clear();
        commit(last); // that may have been heard before
    }

    /** Notes that all batches up to a number are committed. */
    synchronized void commit(long batch) {
        last = Math.max(last, batch);
        while (!passed.isEmpty() && passed.peek().batch() <= batch) {
            committed.putAll(passed.remove().offsets());
        }
    }

    /** Notes that the batch at work will never be committed. */
    synchronized void abort() {
        pending.clear();
    }

    @Override
    public Future<Map<ByteBuffer, ByteBuffer>> get(Collection<ByteBuffer> keys) {
        Map<ByteBuffer, ByteBuffer> found = new HashMap<>();
        List<ByteBuffer> others = new ArrayList<>();
        for (ByteBuffer key : keys) {
            Optional<ByteBuffer> known = committed.get(key);
            if (known == null) {
                others.add(key);
            } else {
                known.ifPresent(offset -> found.put(key, offset.duplicate()));
            }
        }
        try {
            found.putAll(super.get(others).get());
        } catch (InterruptedException | ExecutionException impossible) {
            throw new IllegalStateException(impossible); // it is complete
        }
        return CompletableFuture.completedFuture(found);
    }

    @Override
    public synchronized Future<Void> set(Map<ByteBuffer, ByteBuffer> values, Callback<Void> callback) {
        values.forEach((key, value) -> pending.put(key, Optional.ofNullable(value)));
        if (callback != null) {
            callback.onCompletion(null, null);
        }
        return CompletableFuture.completedFuture(null);
    }
}
