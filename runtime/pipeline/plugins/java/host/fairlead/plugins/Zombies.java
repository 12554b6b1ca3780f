package fairlead.plugins;

import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.CommonClientConfigs;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * The producers that former runs of this host's tasks have left behind. One that was killed amid a transaction
 * keeps it open for a minute, and a {@code Worker} reads the topic of offsets to its end before it starts any task:
 * it would wait for that minute. A task fences its own zombie, too, but only once it starts.
 */
final class Zombies {
    private final DistributedConfig config;
    private final Set<ConnectorTaskId> fenced = new HashSet<>();

    Zombies(Map<String, String> properties) {
        config = IdleHerder.online(properties);
    }

    /** Ends the transactions of tasks that have been given to this host, each once; waits for no broker. */
    synchronized void end(List<ConnectorTaskId> tasks) {
        List<String> found = tasks.stream()
            .filter(fenced::add)
            .map(id -> Worker.taskTransactionalId(config.groupId(), id.connector(), id.task()))
            .collect(Collectors.toList());
        if (config.exactlyOnceSourceEnabled() && !found.isEmpty()) {
            Thread thread = new Thread(() -> fence(found), "zombies");
            thread.setDaemon(true);
            thread.start();
        }
    }

    private void fence(List<String> transactionalIds) {
        Map<String, Object> own = new HashMap<>(config.originals());
        own.putAll(config.originalsWithPrefix("admin."));
        own.put(CommonClientConfigs.CLIENT_ID_CONFIG, "zombies");
        try (Admin admin = Admin.create(own)) {
            while (isAway(admin, transactionalIds)) {
                System.err.println("transactions of former tasks are not ended yet: no broker has answered");
            }
        } catch (InterruptedException end) {
            Thread.currentThread().interrupt();
        }
    }

    /** Returns whether it is to be tried again. */
    private static boolean isAway(Admin admin, List<String> transactionalIds) throws InterruptedException {
        try {
            admin.fenceProducers(transactionalIds).all().get();
            return false;
        } catch (ExecutionException refused) {
            if (refused.getCause() instanceof RetriableException) {
                return true;
            }
            // Another login may be needed, which the connector's config has: the task itself does it.
            System.err.println("transactions of former tasks are left open: " + refused.getCause());
            return false;
        }
    }
}
