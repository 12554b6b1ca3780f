package org.apache.kafka.connect.runtime.distributed;

import com.fasterxml.jackson.databind.ObjectMapper;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Scanner;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/**
 * Asks Connect's own incremental assignor: a round comes in as a line of JSON, what the assignor
 * made of it goes out as another.
 *
 * <p>It lies in Connect's package because only there the one call is visible that computes.
 */
public final class ConnectPeer {
    record Load(Collection<String> connectors, Collection<ConnectorTaskId> tasks) {}

    /** One round; with {@code leadsSince}, the generation it led last, a new assignor begins. */
    record Round(
            Integer leadsSince,
            int maxDelayMs,
            long nowMs,
            int completed,
            int generation,
            Map<String, Integer> taskCounts,
            TreeMap<String, Load> reported) {}

    record Made(
            Map<String, Load> assigned,
            Map<String, Load> revoked,
            int delayMs,
            long dueMs,
            Collection<String> candidates,
            long tookNs) {}

    private long nowMs;
    private IncrementalCooperativeAssignor assignor;

    public static void main(String[] args) throws Exception {
        ConnectPeer peer = new ConnectPeer();
        ObjectMapper json = new ObjectMapper();
        Scanner lines = new Scanner(System.in, "UTF-8");
        while (lines.hasNextLine()) {
            Round round = json.readValue(lines.nextLine(), Round.class);
            System.out.write((json.writeValueAsString(peer.play(round)) + "\n").getBytes("UTF-8"));
            System.out.flush();
        }
    }

    private Made play(Round round) {
        nowMs = round.nowMs;
        if (round.leadsSince != null) {
            assignor = new IncrementalCooperativeAssignor(new LogContext(), clock(), round.maxDelayMs);
            assignor.previousGenerationId = round.leadsSince;
        }
        Map<String, ConnectorsAndTasks> reported = new TreeMap<>();
        round.reported.forEach((worker, load) -> reported.put(worker, had(load)));
        List<String> candidates = new ArrayList<>(assignor.candidateWorkersForReassignment);
        ClusterConfigState configs = configs(round.taskCounts);
        long begun = System.nanoTime();
        IncrementalCooperativeAssignor.ClusterAssignment made =
                assignor.performTaskAssignment(configs, round.completed, round.generation, reported);
        long took = System.nanoTime() - begun;
        putInOrder(candidates);
        Map<String, Load> assigned = new TreeMap<>();
        Map<String, Load> revoked = new TreeMap<>();
        for (String each : reported.keySet()) {
            assigned.put(each, new Load(made.newlyAssignedConnectors(each), made.newlyAssignedTasks(each)));
            revoked.put(each, new Load(made.newlyRevokedConnectors(each), made.newlyRevokedTasks(each)));
        }
        return new Made(
                assigned,
                revoked,
                assignor.delay,
                assignor.scheduledRebalance,
                assignor.candidateWorkersForReassignment,
                took);
    }

    /** Puts candidates that came in the same round in the order of their ids, not of a hash set. */
    private void putInOrder(List<String> before) {
        Set<String> now = assignor.candidateWorkersForReassignment;
        List<String> ordered = new ArrayList<>(before);
        ordered.retainAll(now);
        Set<String> added = new TreeSet<>(now);
        added.removeAll(ordered);
        ordered.addAll(added);
        now.clear();
        now.addAll(ordered);
    }

    private static ConnectorsAndTasks had(Load load) {
        return new ConnectorsAndTasks.Builder().with(load.connectors, load.tasks).build();
    }

    private static ClusterConfigState configs(Map<String, Integer> taskCounts) {
        Map<String, Map<String, String>> connectors = new HashMap<>();
        taskCounts.keySet().forEach(name -> connectors.put(name, Map.of()));
        return new ClusterConfigState(
                0, null, taskCounts, connectors, Map.of(), Map.of(), Map.of(), Map.of(), Map.of(),
                Set.of(), Set.of());
    }

    private Time clock() {
        Class<?>[] kinds = {Time.class};
        return (Time) Proxy.newProxyInstance(Time.class.getClassLoader(), kinds, (self, method, given) -> {
            if (method.getName().equals("milliseconds")) {
                return nowMs;
            }
            throw new UnsupportedOperationException(method.getName());
        });
    }
}
