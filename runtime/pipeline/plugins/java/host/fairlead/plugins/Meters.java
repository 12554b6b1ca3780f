package fairlead.plugins;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import javax.management.Attribute;
import javax.management.InstanceNotFoundException;
import javax.management.IntrospectionException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;
import javax.management.ReflectionException;

/**
 * The metrics of this JVM's connectors, tasks and clients of Kafka, which are where Kafka has them: in JMX. Those of
 * Debezium's connectors are there as well.
 *
 * <p>Only numbers are read, and what is true is 1. A task has as many whatever it reads: what its consumer has of each partition becomes
 * one sum.
 */
final class Meters {
    /** What is told: not what a herder knows of a cluster, since there is none. */
    private static final List<String> TASKS = List.of(
        "kafka.connect:type=connect-worker-metrics",
        "kafka.connect:type=connector-task-metrics,*",
        "kafka.connect:type=source-task-metrics,*",
        "kafka.connect:type=sink-task-metrics,*",
        "kafka.connect:type=task-error-metrics,*");
    private static final List<String> OTHERS = List.of(
        "debezium.*:type=connector-metrics,*",
        "kafka.producer:type=producer-metrics,client-id=*",
        "kafka.consumer:type=consumer-fetch-manager-metrics,client-id=*",
        "kafka.consumer:type=consumer-coordinator-metrics,client-id=*");
    private static final String CONSUMERS = "kafka.consumer";
    private static final String FETCHES = "consumer-fetch-manager-metrics";
    private static final String PARTITIONS = CONSUMERS + ":type=" + FETCHES + ",client-id=*,topic=*,partition=*";
    private static final String TYPE = "type";
    private static final String CLIENT = "client-id";
    private static final String LAG = "records-lag";

    private final MBeanServer server = ManagementFactory.getPlatformMBeanServer();

    /**
     * Returns the beans of tasks, and the lag of each consumer as a bean; or {@code all}, which are many more.
     * Each has domain, type, further labels, and values.
     */
    List<Map<String, Object>> read(boolean all) {
        List<Map<String, Object>> beans = new ArrayList<>();
        TASKS.forEach(pattern -> find(pattern).forEach(name -> beans.add(bean(name))));
        if (all) {
            OTHERS.forEach(pattern -> find(pattern).forEach(name -> beans.add(bean(name))));
        }
        lags().forEach((client, lag) -> beans.add(
            bean(CONSUMERS, FETCHES, Map.of(CLIENT, client), Map.of(LAG, lag))));
        return beans;
    }

    private Map<String, Object> bean(ObjectName name) {
        return bean(name.getDomain(), name.getKeyProperty(TYPE), labels(name), values(name));
    }

    private static Map<String, Object> bean(
        String domain, String type, Map<String, String> labels, Map<String, Double> values) {
        return Map.of("domain", domain, TYPE, type, "labels", labels, "values", values);
    }

    /** Returns how many records each consumer has not read yet, as of its last fetches. */
    private Map<String, Double> lags() {
        Map<String, Map<String, Double>> partitions = new HashMap<>();
        for (ObjectName name : find(PARTITIONS)) {
            Map<String, String> labels = labels(name);
            Double lag = values(name).get(LAG);
            if (lag != null) {
                // A topic with dots has another bean by its former name, with underscores.
                String partition = labels.get("topic").replace('.', '_') + "-" + labels.get("partition");
                partitions.computeIfAbsent(labels.get(CLIENT), client -> new HashMap<>()).put(partition, lag);
            }
        }
        Map<String, Double> sums = new HashMap<>();
        partitions.forEach((client, each) -> sums.put(client, each.values().stream().mapToDouble(lag -> lag).sum()));
        return sums;
    }

    private Set<ObjectName> find(String pattern) {
        try {
            Set<ObjectName> found = new TreeSet<>(Comparator.comparing(ObjectName::getCanonicalName));
            found.addAll(server.queryNames(new ObjectName(pattern), null));
            return found;
        } catch (MalformedObjectNameException wrong) {
            throw new IllegalArgumentException(wrong);
        }
    }

    private static Map<String, String> labels(ObjectName name) {
        Map<String, String> labels = new LinkedHashMap<>();
        name.getKeyPropertyList().forEach((key, value) -> labels.put(
            key, value.startsWith("\"") ? ObjectName.unquote(value) : value));
        labels.remove(TYPE);
        return labels;
    }

    /** Returns the numbers of a bean; one that is gone by now, or has none yet, has none. */
    private Map<String, Double> values(ObjectName name) {
        Map<String, Double> values = new LinkedHashMap<>();
        try {
            String[] names = Arrays.stream(server.getMBeanInfo(name).getAttributes())
                .map(MBeanAttributeInfo::getName)
                .toArray(String[]::new);
            for (Attribute each : server.getAttributes(name, names).asList()) {
                if (each.getValue() instanceof Number number && Double.isFinite(number.doubleValue())) {
                    values.put(each.getName(), number.doubleValue());
                } else if (each.getValue() instanceof Boolean truth) {
                    values.put(each.getName(), truth ? 1.0 : 0.0);
                }
            }
        } catch (InstanceNotFoundException gone) {
            return values;
        } catch (IntrospectionException | ReflectionException impossible) {
            throw new IllegalStateException(impossible);
        }
        return values;
    }
}
