package fairlead.plugins;

import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.connect.runtime.AbstractStatus;
import org.apache.kafka.connect.runtime.ConnectorStatus;
import org.apache.kafka.connect.runtime.TaskStatus;
import org.apache.kafka.connect.runtime.TopicStatus;
import org.apache.kafka.connect.storage.MemoryStatusBackingStore;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** The states of this JVM's connectors and tasks, each change of which is told to the other process. */
final class StateNews extends MemoryStatusBackingStore {
    private static final long AGAIN_MS = 10_000;

    private final Link link;

    StateNews(Link link) {
        this.link = link;
    }

    @Override
    public void put(ConnectorStatus status) {
        super.put(status);
        tell(status.id(), null, status);
    }

    @Override
    public void put(TaskStatus status) {
        super.put(status);
        tell(status.id().connector(), status.id().task(), status);
    }

    @Override
    public void put(TopicStatus status) {
        super.put(status);
        link.tell(
            "topic", Map.of("connector", status.connector(), "task", status.task(), "topic", status.topic()));
    }

    /** Forgets a topic after a while, so that one that is still in use is told again: it may have been reset. */
    @Override
    public TopicStatus getTopic(String connector, String topic) {
        TopicStatus told = super.getTopic(connector, topic);
        return told == null || told.discoverTimestamp() + AGAIN_MS < System.currentTimeMillis() ? null : told;
    }

    /** Forgets the state of a task that is about to start again. */
    void forget(ConnectorTaskId id) {
        super.put(new TaskStatus(id, AbstractStatus.State.DESTROYED, "", 0));
    }

    private void tell(String connector, Integer task, AbstractStatus<?> status) {
        Map<String, Object> news = new HashMap<>();
        news.put("connector", connector);
        news.put("task", task);
        news.put("state", status.state().name());
        news.put("trace", status.trace());
        link.tell("state", news);
    }
}
