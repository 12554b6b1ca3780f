package fairlead.plugins;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.connect.source.SourceRecord;
import org.apache.kafka.connect.source.SourceTask;
import org.apache.kafka.connect.source.SourceTaskContext;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.connect.util.LoggingContext;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A source task that is polled while a sink holds its records, and hears of these when they count. What it hears is
 * what it would in Connect, in the same order: each record of a transaction, and then that it is committed. As there,
 * the thread may be another one than that of its polls.
 *
 * <p>Records are kept until then. Of more bytes than {@link #MOST_BYTES} what is kept lacks key and value.
 */
final class CountedTask extends SourceTask {
    /** The transaction that was committed last. */
    interface Last {
        long number();

        /** About how many bytes its records take. */
        long size();
    }

    private record Sent(SourceRecord record, RecordMetadata metadata) {
        Sent thin() {
            return new Sent(
                record.newRecord(record.topic(), record.kafkaPartition(), null, null, null, null, record.timestamp()),
                metadata);
        }
    }

    private record Transaction(long number, long size, List<Sent> records) {
    }

    private static final Logger LOG = LoggerFactory.getLogger(CountedTask.class);
    private static final long MOST_BYTES = 64L << 20;

    private final SourceTask task;
    private final ConnectorTaskId id;
    private final Last last;
    private final ReentrantLock telling = new ReentrantLock();
    private final Queue<Transaction> open = new ConcurrentLinkedQueue<>();
    /** How many bytes the records take that are kept whole. */
    private final AtomicLong kept = new AtomicLong();
    private final AtomicLong counts = new AtomicLong();
    private List<Sent> sent = new ArrayList<>();

    CountedTask(SourceTask task, ConnectorTaskId id, Last last) {
        this.task = task;
        this.id = id;
        this.last = last;
    }

    /** Hears that all transactions up to a number count; a later number may be heard before. */
    void count(long number) {
        counts.accumulateAndGet(number, Math::max);
        tell();
    }

    @Override
    public void commitRecord(SourceRecord record, RecordMetadata metadata) {
        sent.add(new Sent(record, metadata));
    }

    @Override
    public void commit() {
        long size = last.size();
        List<Sent> records = sent;
        if (kept.get() + size > MOST_BYTES) {
            records = sent.stream().map(Sent::thin).toList();
            size = 0;
        }
        kept.addAndGet(size);
        open.add(new Transaction(last.number(), size, records));
        sent = new ArrayList<>();
        tell();
    }

    /** Tells the task what counts by now, unless another thread does so. */
    private void tell() {
        while (isDue() && telling.tryLock()) {
            LoggingContext context = LoggingContext.forTask(id);
            try {
                while (isDue()) {
                    Transaction next = open.remove();
                    kept.addAndGet(-next.size());
                    tell(next);
                }
            } finally {
                context.close();
                telling.unlock();
            }
        }
    }

    private boolean isDue() {
        Transaction next = open.peek();
        return next != null && next.number() <= counts.get();
    }

    private void tell(Transaction next) {
        Thread thread = Thread.currentThread();
        ClassLoader before = thread.getContextClassLoader();
        thread.setContextClassLoader(task.getClass().getClassLoader());
        try {
            for (Sent each : next.records()) {
                attempt("commitRecord", () -> task.commitRecord(each.record(), each.metadata()));
            }
            attempt("commit", task::commit);
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private interface Call {
        void run() throws InterruptedException;
    }

    /** Goes on after an error, as Connect does. */
    private void attempt(String method, Call call) {
        try {
            call.run();
        } catch (Throwable error) {
            LOG.error("{} Exception thrown while calling task.{}()", id, method, error);
        }
    }

    @Override
    public void initialize(SourceTaskContext context) {
        task.initialize(context);
    }

    @Override
    public String version() {
        return task.version();
    }

    @Override
    public void start(Map<String, String> config) {
        task.start(config);
    }

    @Override
    public List<SourceRecord> poll() throws InterruptedException {
        return task.poll();
    }

    @Override
    public void stop() {
        task.stop();
    }
}
