"""A sink of Connect that writes down what it is told, and does what its key `does` says.

The key `told` is a file that gets a line for each record that was put, and for each partition that
was opened. `does` is one of these:

    holds          agrees to whole fives of offsets only
    opts out       agrees to nothing
    seeks          goes back to offset 1 once it has been put offset 3, a single time
    skips          goes on at offset 2 when a partition is opened
    retries        refuses its first two puts, each for a moment
    fails flushes  fails at the first offsets that it is asked for, so the task rewinds
    reports        reports records whose value has `bad` in it
    pauses         pauses its partition at offset 1, until it is asked for offsets
    pauses a       pauses the partition of the topic `a` at its first record, until `go` comes
    fails          throws at a value with `bad` in it
    shows schemas  writes down the schemas of keys, values and headers as well
"""

from pathlib import Path

from fairlead_tests.plugins.bad_plugin import write_plugin

SINK = "told.ToldSink"
_SERVICES = {"org.apache.kafka.connect.sink.SinkConnector": [SINK]}
_JAVA = """
package told;

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.*;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.sink.*;

public class ToldSink extends SinkConnector {
    private Map<String, String> config;

    public void start(Map<String, String> given) { config = given; }
    public Class<? extends Task> taskClass() { return ToldTask.class; }
    public List<Map<String, String>> taskConfigs(int most) {
        return Collections.nCopies(most, config);
    }
    public void stop() { }
    public String version() { return "1.0"; }

    public ConfigDef config() {
        return new ConfigDef()
            .define("told", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "")
            .define("does", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "")
            .define("password", ConfigDef.Type.PASSWORD, "", ConfigDef.Importance.LOW, "");
    }

    public static class ToldTask extends SinkTask {
        private String told;
        private String does;
        private int puts;
        private int flushes;
        private boolean hasSought;

        public String version() { return "1.0"; }

        public void start(Map<String, String> given) {
            told = given.get("told");
            does = given.getOrDefault("does", "");
        }

        public void open(Collection<TopicPartition> partitions) {
            for (TopicPartition each : partitions) {
                tell("open " + each);
                if (does.equals("skips")) context.offset(each, 2L);
            }
        }

        public void put(Collection<SinkRecord> records) {
            if (records.isEmpty()) return;
            if (does.equals("retries") && ++puts <= 2) {
                tell("refuse " + records.size());
                context.timeout(50);
                throw new RetriableException("not yet");
            }
            for (SinkRecord each : records) {
                TopicPartition at = new TopicPartition(each.topic(), each.kafkaPartition());
                if (text(each.value()).contains("bad")) {
                    if (does.equals("fails")) throw new IllegalStateException("it is bad");
                    if (does.equals("reports")) {
                        Exception why = new IllegalStateException("it is bad");
                        context.errantRecordReporter().report(each, why);
                        continue;
                    }
                }
                tell(at + "@" + each.kafkaOffset() + " " + describe(each));
                if (does.equals("seeks") && each.kafkaOffset() == 3 && !hasSought) {
                    hasSought = true;
                    context.offset(at, 1);
                }
                if (does.equals("pauses a") && at.topic().equals("a") && !hasSought) {
                    hasSought = true;
                    context.pause(at);
                }
                if (does.equals("pauses a") && text(each.value()).contains("go")) {
                    resumeAll();
                }
                if (does.equals("pauses") && each.kafkaOffset() == 1) {
                    context.pause(at);
                    tell("pause");
                }
            }
        }

        private void resumeAll() {
            context.resume(context.assignment().toArray(new TopicPartition[0]));
        }

        private String describe(SinkRecord each) {
            StringBuilder line = new StringBuilder();
            if (each.key() != null) line.append(text(each.key())).append(" -> ");
            line.append(text(each.value()));
            if (each.timestamp() != null) line.append(" at ").append(each.timestamp());
            boolean shows = does.equals("shows schemas");
            for (Header header : each.headers()) {
                line.append(" ").append(header.key()).append("=").append(header.value());
                if (shows) line.append(":").append(text(header.schema()));
            }
            if (shows) {
                line.append(" key ").append(text(each.keySchema()));
                line.append(" value ").append(text(each.valueSchema()));
            }
            return line.toString();
        }

        private static String text(Schema schema) {
            if (schema == null) return "none";
            StringBuilder all = new StringBuilder(schema.type().getName());
            if (schema.name() != null) all.append(" ").append(schema.name());
            if (schema.version() != null) all.append(" v").append(schema.version());
            if (schema.isOptional()) all.append("?");
            if (schema.defaultValue() != null) all.append(" = ").append(schema.defaultValue());
            if (schema.parameters() != null) all.append(" ").append(schema.parameters());
            if (schema.type() != Schema.Type.STRUCT) return all.toString();
            List<String> fields = new ArrayList<>();
            for (Field each : schema.fields()) fields.add(each.name() + " " + text(each.schema()));
            return all + " (" + String.join(", ", fields) + ")";
        }

        private static String text(Object value) {
            if (value instanceof byte[]) return new String((byte[]) value, StandardCharsets.UTF_8);
            if (value instanceof java.util.Date time) return "time " + time.getTime();
            if (value instanceof List) {
                List<String> items = new ArrayList<>();
                for (Object each : (List<?>) value) items.add(text(each));
                return items.toString();
            }
            if (!(value instanceof Struct)) return String.valueOf(value);
            List<String> fields = new ArrayList<>();
            Struct struct = (Struct) value;
            for (Field each : struct.schema().fields()) {
                fields.add(each.name() + "=" + text(struct.get(each)));
            }
            return "{" + String.join(", ", fields) + "}";
        }

        public Map<TopicPartition, OffsetAndMetadata> preCommit(
                Map<TopicPartition, OffsetAndMetadata> current) {
            if (does.equals("fails flushes") && flushes == 0 && !current.isEmpty()
                    && current.values().iterator().next().offset() > 0) {
                flushes++;
                tell("fail flush");
                throw new IllegalStateException("no flush");
            }
            if (does.equals("pauses") && !context.assignment().isEmpty()) {
                resumeAll();
            }
            if (does.equals("opts out")) return Map.of();
            if (!does.equals("holds")) return current;
            Map<TopicPartition, OffsetAndMetadata> agreed = new HashMap<>();
            current.forEach(
                (at, now) -> agreed.put(at, new OffsetAndMetadata(now.offset() / 5 * 5)));
            return agreed;
        }

        public void stop() { tell("stop"); }

        private void tell(String line) {
            try {
                Files.writeString(Path.of(told), line + "\\n",
                    StandardOpenOption.CREATE, StandardOpenOption.APPEND);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
"""


def write_told_sink(folder: Path) -> Path:
    """Write a folder with its jar."""
    return write_plugin(folder, {SINK: _JAVA}, _SERVICES)
