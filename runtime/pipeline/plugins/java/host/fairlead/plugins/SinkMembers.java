package fairlead.plugins;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ConsumerGroupDescription;
import org.apache.kafka.clients.admin.DescribeConsumerGroupsOptions;
import org.apache.kafka.clients.admin.MemberToRemove;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.UnknownMemberIdException;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.util.ConnectorTaskId;
import org.apache.kafka.connect.util.SinkUtils;

/**
 * The places that tasks of sinks have in their consumer groups. A static member keeps its place, and its partitions,
 * until its session ends: one that ends for good is taken out.
 */
final class SinkMembers {
    private static final int DESCRIBE_MS = 15_000;
    private static final int LEAVE_MS = 2_000;

    private final WorkerConfig config;

    SinkMembers(WorkerConfig config) {
        this.config = config;
    }

    /** Removes all tasks of a sink; members that others have put into its group stay. */
    void removeAll(Admin admin, Map<String, String> connector) throws Throwable {
        String group = groupOf(connector);
        String own = OwnOverrides.instanceIds(ConnectorAdmin.nameOf(connector));
        Set<MemberToRemove> tasks = members(admin, group, own);
        if (!tasks.isEmpty()) {
            admin.removeMembersFromConsumerGroup(group, new RemoveMembersFromConsumerGroupOptions(tasks)).all().get();
        }
    }

    /** Removes a task that has ended, if its place is one that it has by itself; tries once, and briefly. */
    void remove(Map<String, String> connector, ConnectorTaskId task) throws Throwable {
        if (OwnOverrides.withInstanceId(connector, config, task) == connector) {
            return; // the place is the user's, as its name is
        }
        RemoveMembersFromConsumerGroupOptions one =
            new RemoveMembersFromConsumerGroupOptions(Set.of(new MemberToRemove(task.toString())));
        Admin admin = ConnectorAdmin.open(config, connector, "connector-leave");
        try {
            admin.removeMembersFromConsumerGroup(groupOf(connector), one.timeoutMs(LEAVE_MS)).all().get();
        } catch (ExecutionException failed) {
            if (!isGone(failed)) {
                throw failed.getCause();
            }
        } finally {
            admin.close(Duration.ZERO);
        }
    }

    /** It may say that one member could not be removed, and why as the cause of that. */
    private static boolean isGone(Throwable failed) {
        for (Throwable each = failed; each != null; each = each.getCause()) {
            if (each instanceof UnknownMemberIdException || each instanceof GroupIdNotFoundException) {
                return true;
            }
        }
        return false;
    }

    private String groupOf(Map<String, String> connector) {
        Map<String, Object> consumer = config.originalsWithPrefix("consumer.");
        consumer.putAll(
            ConnectorAdmin.overrides(connector, ConnectorConfig.CONNECTOR_CLIENT_CONSUMER_OVERRIDES_PREFIX));
        Object given = consumer.get(ConsumerConfig.GROUP_ID_CONFIG);
        return given == null ? SinkUtils.consumerGroupId(ConnectorAdmin.nameOf(connector)) : given.toString();
    }

    private static Set<MemberToRemove> members(Admin admin, String group, String instances) throws Throwable {
        DescribeConsumerGroupsOptions limited = new DescribeConsumerGroupsOptions().timeoutMs(DESCRIBE_MS);
        try {
            Map<String, ConsumerGroupDescription> found =
                admin.describeConsumerGroups(List.of(group), limited).all().get();
            return found.get(group).members().stream()
                .flatMap(each -> each.groupInstanceId().stream())
                .filter(each -> each.matches(instances))
                .map(MemberToRemove::new)
                .collect(Collectors.toSet());
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof GroupIdNotFoundException) {
                return Set.of();
            }
            throw failed.getCause();
        }
    }
}
