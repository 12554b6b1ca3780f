package org.apache.kafka.connect.runtime;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** Has a worker start a task that it does not build itself: its own method for that is private. */
final class TaskStart {
    private TaskStart() {
    }

    /** Starts a task as a worker does; the herder hears whether that succeeds. */
    static void with(
        Worker.TaskBuilder<?, ?> builder,
        Worker worker,
        ConnectorTaskId id,
        ClusterConfigState state,
        Map<String, String> connector,
        Map<String, String> task,
        AbstractHerder herder) {
        try {
            Method start = Worker.class.getDeclaredMethod(
                "startTask",
                ConnectorTaskId.class,
                Map.class,
                Map.class,
                ClusterConfigState.class,
                TaskStatus.Listener.class,
                Worker.TaskBuilder.class);
            start.setAccessible(true);
            start.invoke(worker, id, connector, task, state, herder, builder);
        } catch (InvocationTargetException failed) {
            if (failed.getCause() instanceof RuntimeException cause) {
                throw cause;
            }
            throw new IllegalStateException(failed.getCause());
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this version of Connect is not supported", error);
        }
    }
}
