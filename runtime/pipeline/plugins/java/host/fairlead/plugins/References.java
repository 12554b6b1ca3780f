package fairlead.plugins;

import java.io.IOException;
import java.util.HashMap;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeoutException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.config.ConfigTransformer;
import org.apache.kafka.connect.errors.ConnectException;
import org.apache.kafka.connect.runtime.ConnectorConfig;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.kafka.connect.runtime.WorkerConfigTransformer;

/**
 * Connect's replacement of references in configs, which tells the other process every value that comes of it: these
 * are secrets until the opposite is known, and are kept out of logs and answers there.
 */
final class References extends WorkerConfigTransformer {
    private static final long ASK_MS = 10_000;
    private static final Pattern REFERENCE = ConfigTransformer.DEFAULT_PATTERN;

    private final WorkerConfigTransformer own;
    private final Link link;

    References(WorkerConfigTransformer own, Link link) {
        super(null, Map.of());
        this.own = own;
        this.link = link;
    }

    @Override
    public Map<String, String> transform(Map<String, String> configs) {
        return tell(configs, own.transform(configs));
    }

    /** Replaces references, and has a connector started again when one of the values is no longer good. */
    @Override
    public Map<String, String> transform(String connector, Map<String, String> configs) {
        return tell(configs, own.transform(connector, configs));
    }

    @Override
    public void close() {
        own.close();
    }

    /** Has a worker tell the other process what its references lead to. */
    static void tellOf(Worker worker, Link link) {
        IdleHerder.set(
            Worker.class, "workerConfigTransformer", worker, new References(worker.configTransformer(), link));
    }

    /** Throws a ConfigException for a reference that a provider of the worker has not replaced. */
    static void require(Map<String, String> resolved, Iterable<String> providers) {
        resolved.forEach((key, value) -> {
            Matcher found = REFERENCE.matcher(value == null ? "" : value);
            while (found.find()) {
                for (String each : providers) {
                    if (each.equals(found.group(1))) {
                        throw new ConfigException(key + ": " + found.group() + " cannot be resolved: the provider "
                            + each + " of config.providers has no such value, or may not read there");
                    }
                }
            }
        });
    }

    private Map<String, String> tell(Map<String, String> configs, Map<String, String> resolved) {
        Map<String, String> values = new HashMap<>();
        if (configs != null) {
            configs.forEach((key, text) -> {
                String value = resolved.get(key);
                if (value != null && !value.equals(text)) {
                    values.putAll(split(text, value));
                }
            });
        }
        if (!values.isEmpty()) {
            String name = configs.getOrDefault(ConnectorConfig.NAME_CONFIG, "");
            askToMask(name, values);
        }
        return resolved;
    }

    /** Waits until the other process masks values: what uses them may write them to the log at once. */
    private void askToMask(String connector, Map<String, String> values) {
        try {
            link.ask("mask", Map.of("connector", connector, "shown", values), ASK_MS);
        } catch (IOException | TimeoutException silent) {
            throw new ConnectException("references of " + connector + " are not replaced: they might be logged", silent);
        }
    }

    /** Returns each value in a text of which the references have been replaced, and what to show instead. */
    private static Map<String, String> split(String text, String value) {
        Map<String, String> values = new TreeMap<>();
        values.put(value, text);
        StringBuilder pattern = new StringBuilder();
        Matcher found = REFERENCE.matcher(text);
        int end = 0;
        for (; found.find(); end = found.end()) {
            pattern.append(Pattern.quote(text.substring(end, found.start()))).append("(.*?)");
        }
        pattern.append(Pattern.quote(text.substring(end)));
        Matcher parts = Pattern.compile(pattern.toString(), Pattern.DOTALL).matcher(value);
        found.reset();
        if (parts.matches()) {
            for (int part = 1; found.find(); part++) {
                values.put(parts.group(part), found.group());
            }
        }
        values.remove("");
        return values;
    }
}
