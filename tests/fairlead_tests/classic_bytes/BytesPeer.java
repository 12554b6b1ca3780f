package org.apache.kafka.connect.runtime.distributed;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** Reads bytes with Kafka's own classes: a kind and hex per line come in, what was read goes out. */
public class BytesPeer {
    private static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader asks =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        for (String line; (line = asks.readLine()) != null; ) {
            String[] told = line.split(" ", -1);
            Object read;
            try {
                read = read(told[0], ByteBuffer.wrap(HexFormat.of().parseHex(told[1])));
            } catch (RuntimeException refused) {
                read = null;
            }
            answers.println(JSON.writeValueAsString(read));
        }
    }

    private static Map<String, Object> read(String kind, ByteBuffer data) {
        return switch (kind) {
            case "eager-metadata" -> told(ConnectProtocol.deserializeMetadata(data));
            case "metadata" -> extended(
                    IncrementalCooperativeConnectProtocol.deserializeMetadata(data));
            case "eager-assignment" -> told(ConnectProtocol.deserializeAssignment(data));
            case "assignment" -> extended(
                    IncrementalCooperativeConnectProtocol.deserializeAssignment(data));
            case "subscription" -> told(ConsumerProtocol.deserializeSubscription(data));
            default -> told(ConsumerProtocol.deserializeAssignment(data));
        };
    }

    private static Map<String, Object> told(ConnectProtocol.WorkerState state) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("url", state.url());
        told.put("config_offset", state.offset());
        return told;
    }

    private static Map<String, Object> extended(ExtendedWorkerState state) {
        Map<String, Object> told = told(state);
        told.put("allocation", extended(state.assignment()));
        return told;
    }

    private static Map<String, Object> told(ConnectProtocol.Assignment assignment) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("error", assignment.error());
        told.put("leader", assignment.leader());
        told.put("leader_url", assignment.leaderUrl());
        told.put("config_offset", assignment.offset());
        told.put("connectors", assignment.connectors());
        told.put("tasks", tasks(assignment.tasks()));
        return told;
    }

    private static Map<String, Object> extended(ExtendedAssignment assignment) {
        Map<String, Object> told = told((ConnectProtocol.Assignment) assignment);
        told.put("version", assignment.version());
        told.put("revoked_connectors", assignment.revokedConnectors());
        told.put("revoked_tasks", tasks(assignment.revokedTasks()));
        told.put("delay", assignment.delay());
        return told;
    }

    private static List<List<Object>> tasks(Collection<ConnectorTaskId> tasks) {
        List<List<Object>> told = new ArrayList<>();
        tasks.forEach(each -> told.add(List.of(each.connector(), each.task())));
        return told;
    }

    private static Map<String, Object> told(Subscription subscription) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("topics", subscription.topics());
        told.put("user_data", hex(subscription.userData()));
        told.put("owned", partitions(subscription.ownedPartitions()));
        told.put("generation", subscription.generationId().orElse(-1));
        told.put("rack", subscription.rackId().orElse(null));
        return told;
    }

    private static Map<String, Object> told(Assignment assignment) {
        Map<String, Object> told = new LinkedHashMap<>();
        told.put("partitions", partitions(assignment.partitions()));
        told.put("user_data", hex(assignment.userData()));
        return told;
    }

    private static List<List<Object>> partitions(Collection<TopicPartition> partitions) {
        List<List<Object>> told = new ArrayList<>();
        partitions.forEach(each -> told.add(List.of(each.topic(), each.partition())));
        return told;
    }

    private static String hex(ByteBuffer data) {
        if (data == null) {
            return null;
        }
        byte[] copy = new byte[data.remaining()];
        data.duplicate().get(copy);
        return HexFormat.of().formatHex(copy);
    }
}
