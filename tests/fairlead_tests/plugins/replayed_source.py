"""A source of Connect that sends the records of a file, and writes down what it is told.

The file has one JSON object a line: `topic`, `key` and `value` as Connect's envelopes (schema and
payload), `headers`, `partition`, `offset` and `timestamp`; an empty line ends a poll. A line of
`"fail"` throws, one of `"block"` blocks. The key `told` is a file that gets a line for each poll,
each record that counts and each offset that is read.
"""

from pathlib import Path

from fairlead_tests.plugins.bad_plugin import write_plugin

SOURCE = "replayed.ReplayedSource"
SLOW_SOURCE = "replayed.SlowSource"
"""It, and its task, take a moment to be made."""
_SERVICES = {"org.apache.kafka.connect.source.SourceConnector": [SOURCE, SLOW_SOURCE]}
_JAVA = """
package replayed;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.header.*;
import org.apache.kafka.connect.json.JsonConverter;
import org.apache.kafka.connect.source.*;

public class ReplayedSource extends SourceConnector {
    private Map<String, String> config;

    public void start(Map<String, String> given) {
        config = given;
        if ("refuses".equals(given.get("does"))) {
            throw new IllegalStateException("it does not start");
        }
    }

    public Class<? extends Task> taskClass() { return ReplayedTask.class; }
    public List<Map<String, String>> taskConfigs(int most) { return List.of(config); }
    public void stop() { }
    public String version() { return "1.0"; }

    public ConfigDef config() {
        return new ConfigDef()
            .define("records", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "")
            .define("told", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "")
            .define("does", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "")
            .define("password", ConfigDef.Type.PASSWORD, "", ConfigDef.Importance.LOW, "");
    }

    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> given) {
        switch (given.getOrDefault("does", "")) {
            case "says no":
                return ExactlyOnceSupport.UNSUPPORTED;
            case "says nothing":
                return null;
            case "fails to say":
                throw new IllegalStateException(given.get("password"));
            default:
                return ExactlyOnceSupport.SUPPORTED;
        }
    }

    public static class ReplayedTask extends SourceTask {
        private static final ObjectMapper JSON = new ObjectMapper();
        private final JsonConverter converter = new JsonConverter();
        private Map<String, String> config;
        private int next;

        public String version() { return "1.0"; }

        public void start(Map<String, String> given) {
            config = given;
            converter.configure(Map.of("schemas.enable", true), false);
            if ("blocks in start".equals(given.get("does"))) {
                try {
                    new java.util.concurrent.CountDownLatch(1).await();
                } catch (InterruptedException end) {
                    throw new IllegalStateException(end);
                }
            }
            next = at();
            tell("starts at " + next);
        }

        /** Where the next record is, by the offset that counts now. */
        private int at() {
            Map<String, Object> found = context.offsetStorageReader().offset(Map.of("file", "one"));
            return found == null ? 0 : ((Long) found.get("at")).intValue();
        }

        public List<SourceRecord> poll() throws InterruptedException {
            List<SourceRecord> sent = new ArrayList<>();
            List<String> lines = lines();
            while (next < lines.size()) {
                String line = lines.get(next++);
                if (line.isEmpty() && sent.isEmpty()) {
                    continue;
                }
                if (line.isEmpty()) {
                    break;
                }
                sent.add(record(line));
            }
            if (sent.isEmpty()) {
                Thread.sleep(20);
                return null;
            }
            tell("polls " + sent.size() + ", " + at() + " counts");
            return sent;
        }

        private List<String> lines() {
            try {
                return Files.readAllLines(Path.of(config.get("records")));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private SourceRecord record(String line) throws InterruptedException {
            if (line.equals("\\"fail\\"")) {
                throw new IllegalStateException("the file says so");
            }
            if (line.equals("\\"block\\"")) {
                new java.util.concurrent.CountDownLatch(1).await();
            }
            try {
                JsonNode each = JSON.readTree(line);
                SchemaAndValue key = data(each.get("key"));
                SchemaAndValue value = data(each.get("value"));
                Map<String, ?> partition = each.has("partition")
                    ? JSON.convertValue(each.get("partition"), Map.class) : Map.of("file", "one");
                Map<String, ?> offset = each.has("offset")
                    ? JSON.convertValue(each.get("offset"), Map.class) : Map.of("at", next);
                Headers headers = new ConnectHeaders();
                each.path("headers").properties()
                    .forEach(h -> headers.addString(h.getKey(), h.getValue().asText()));
                Long time = each.has("timestamp") ? each.get("timestamp").asLong() : null;
                return new SourceRecord(
                    partition, offset, each.get("topic").asText(), null, key.schema(), key.value(),
                    value.schema(), value.value(), time, headers);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private SchemaAndValue data(JsonNode envelope) {
            if (envelope == null || envelope.isNull()) {
                return SchemaAndValue.NULL;
            }
            byte[] text = envelope.toString().getBytes(StandardCharsets.UTF_8);
            return converter.toConnectData("", text);
        }

        public void commitRecord(SourceRecord record, RecordMetadata metadata) {
            tell("counts " + record.sourceOffset() + ", " + at() + " counts");
        }

        public void commit() { tell("commits"); }

        public void stop() { tell("stops, " + at() + " counts"); }

        private void tell(String line) {
            try {
                Files.writeString(Path.of(config.get("told")), line + "\\n",
                    StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
"""


_SLOW = """
package replayed;

import org.apache.kafka.connect.connector.Task;

public class SlowSource extends ReplayedSource {
    public SlowSource() { pause(); }
    public Class<? extends Task> taskClass() { return SlowTask.class; }

    public static class SlowTask extends ReplayedTask {
        public SlowTask() { pause(); }
    }

    private static void pause() {
        try {
            Thread.sleep(500);
        } catch (InterruptedException end) {
            throw new IllegalStateException(end);
        }
    }
}
"""


def write_replayed_source(folder: Path) -> Path:
    """Write a folder with its jar."""
    return write_plugin(folder, {SOURCE: _JAVA, SLOW_SOURCE: _SLOW}, _SERVICES)
