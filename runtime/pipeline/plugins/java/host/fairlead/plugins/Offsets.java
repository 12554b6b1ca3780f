package fairlead.plugins;

import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeClusterOptions;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.kafka.connect.runtime.WorkerConfig;
import org.apache.kafka.connect.runtime.rest.entities.ConnectorOffsets;
import org.apache.kafka.connect.runtime.rest.entities.Message;
import org.apache.kafka.connect.runtime.rest.errors.ConnectRestException;

/**
 * The offsets of connectors (KIP-875), as Kafka's {@code Worker} reads and changes them. Two things come first: the
 * broker has to answer, since Connect would wait for it for longer than anybody waits; and the tasks of a sink have
 * to be out of its consumer group, in which static members stay when they have ended.
 */
final class Offsets {
    private static final int REACH_MS = 15_000;
    private static final int UNAVAILABLE = 503;

    private final Worker worker;
    private final WorkerConfig config;
    private final SinkMembers members;

    Offsets(Worker worker, WorkerConfig config, SinkMembers members) {
        this.worker = worker;
        this.config = config;
        this.members = members;
    }

    /** Returns the offsets of a connector, whose config has no references any more. */
    ConnectorOffsets read(Map<String, String> connector) throws Throwable {
        reach(connector).close();
        return ConnectWorker.await(done -> worker.connectorOffsets(ConnectorAdmin.nameOf(connector), connector, done));
    }

    /** Changes offsets of a connector that is stopped, or removes all: then {@code offsets} is null. */
    Message modify(Map<String, String> connector, ConnectorOffsets offsets, boolean isSink) throws Throwable {
        try (Admin admin = reach(connector)) {
            if (isSink) {
                members.removeAll(admin, connector);
            }
        }
        Map<Map<String, ?>, Map<String, ?>> written = offsets == null ? null : offsets.toMap();
        return ConnectWorker.await(
            done -> worker.modifyConnectorOffsets(ConnectorAdmin.nameOf(connector), connector, written, done));
    }

    /** Returns a client of the connector's Kafka, which has answered. */
    Admin reach(Map<String, String> connector) throws InterruptedException {
        Admin admin = ConnectorAdmin.open(config, connector, "connector-offsets");
        try {
            admin.describeCluster(new DescribeClusterOptions().timeoutMs(REACH_MS)).nodes().get();
            return admin;
        } catch (ExecutionException away) {
            Utils.closeQuietly(admin, "admin of offsets");
            String why = away.getCause().getMessage();
            throw new ConnectRestException(UNAVAILABLE, "Kafka does not answer: " + why + "; nothing was changed");
        }
    }
}
