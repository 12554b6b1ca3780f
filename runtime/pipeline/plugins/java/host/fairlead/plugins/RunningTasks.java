package fairlead.plugins;

import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;
import org.apache.kafka.connect.runtime.TargetState;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * The tasks of a {@code Worker}, each of which is paused by itself. Its own method for that is for a connector and
 * all tasks here at once, and would interfere with a connector that just starts.
 */
final class RunningTasks {
    private final Map<?, ?> tasks;
    private final Method transition;

    RunningTasks(Worker worker) {
        try {
            Field field = Worker.class.getDeclaredField("tasks");
            field.setAccessible(true);
            tasks = (Map<?, ?>) field.get(worker);
            Class<?> task = Class.forName("org.apache.kafka.connect.runtime.WorkerTask");
            transition = task.getDeclaredMethod("transitionTo", TargetState.class);
            transition.setAccessible(true);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this version of Connect is not supported", error);
        }
    }

    /** Has a task pause, or go on; it says as its state once it does. */
    void turn(ConnectorTaskId id, TargetState state) throws Throwable {
        Object task = tasks.get(id);
        if (task == null) {
            return; // it has ended
        }
        try {
            transition.invoke(task, state);
        } catch (InvocationTargetException failed) {
            throw failed.getCause();
        }
    }
}
