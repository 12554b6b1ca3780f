package fairlead.plugins;

import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListTransactionsOptions;
import org.apache.kafka.common.errors.UnsupportedVersionException;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;

/**
 * The tasks that a connector of some name has had, as Kafka remembers them by their transactional ids: also those of
 * one that was deleted, of which nothing else is left.
 */
final class FormerTasks {
    private static final int LIST_MS = 30_000;

    private FormerTasks() {
    }

    /** Returns one more than the highest number among the tasks that have written by transactions; 0: none has. */
    static int count(DistributedConfig config, Map<String, String> connector) throws Throwable {
        String first = Worker.taskTransactionalId(config.groupId(), ConnectorAdmin.nameOf(connector), 0);
        Pattern ids = Pattern.compile(Pattern.quote(first.substring(0, first.length() - 1)) + "(\\d{1,9})");
        try (Admin admin = ConnectorAdmin.open(config, connector, "connector-former-tasks")) {
            try {
                return count(admin, new ListTransactionsOptions().filterOnTransactionalIdPattern(ids.pattern()), ids);
            } catch (UnsupportedVersionException old) { // a broker before 4.1 lists all there are
                return count(admin, new ListTransactionsOptions(), ids);
            }
        }
    }

    private static int count(Admin admin, ListTransactionsOptions which, Pattern ids) throws Throwable {
        try {
            return admin.listTransactions(which.timeoutMs(LIST_MS)).all().get().stream()
                .map(each -> ids.matcher(each.transactionalId()))
                .filter(Matcher::matches)
                .mapToInt(each -> Integer.parseInt(each.group(1)) + 1)
                .max()
                .orElse(0);
        } catch (ExecutionException failed) {
            throw failed.getCause();
        }
    }
}
