"""A source of Connect that sends what its config says, and a transformation that fails for a while.

The key `script` of the source has the words of one poll after another, with `;` between polls. Each
word is a record; `commit` and `abort` end a transaction after the record before them.
"""

from pathlib import Path

from fairlead_tests.plugins.bad_plugin import write_plugin

SOURCE = "scripted.ScriptedSource"
FLAKY = "scripted.Flaky"
_SERVICES = {
    "org.apache.kafka.connect.source.SourceConnector": [SOURCE],
    "org.apache.kafka.connect.transforms.Transformation": [FLAKY],
}
_SCRIPTED_SOURCE = """
package scripted;

import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.*;

public class ScriptedSource extends SourceConnector {
    private Map<String, String> config;

    public void start(Map<String, String> given) { config = given; }
    public Class<? extends Task> taskClass() { return ScriptedTask.class; }
    public List<Map<String, String>> taskConfigs(int most) { return List.of(config); }
    public void stop() { }
    public String version() { return "1.0"; }

    public ConfigDef config() {
        return new ConfigDef()
            .define("topic", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "")
            .define("script", ConfigDef.Type.STRING, ConfigDef.Importance.HIGH, "");
    }

    public ExactlyOnceSupport exactlyOnceSupport(Map<String, String> given) {
        return ExactlyOnceSupport.SUPPORTED;
    }

    public ConnectorTransactionBoundaries canDefineTransactionBoundaries(
        Map<String, String> given) {
        return ConnectorTransactionBoundaries.SUPPORTED;
    }

    public static class ScriptedTask extends SourceTask {
        private static final Map<String, ?> PARTITION = Map.of("script", "only");
        private String topic;
        private String[] polls;
        private int next;

        public String version() { return "1.0"; }

        public void start(Map<String, String> given) {
            topic = given.get("topic");
            polls = given.get("script").split(";");
            Map<String, Object> offset = context.offsetStorageReader().offset(PARTITION);
            next = offset == null ? 0 : ((Number) offset.get("polls")).intValue();
        }

        public List<SourceRecord> poll() throws InterruptedException {
            if (next == polls.length) {
                Thread.sleep(50);
                return null;
            }
            List<SourceRecord> sent = new ArrayList<>();
            Map<String, ?> offset = Map.of("polls", ++next);
            for (String word : polls[next - 1].trim().split(" ")) {
                if (word.equals("commit")) {
                    context.transactionContext().commitTransaction(sent.get(sent.size() - 1));
                } else if (word.equals("abort")) {
                    context.transactionContext().abortTransaction(sent.get(sent.size() - 1));
                } else {
                    sent.add(new SourceRecord(
                        PARTITION, offset, topic, Schema.STRING_SCHEMA, word));
                }
            }
            return sent;
        }

        public void stop() { }
    }
}
"""
_FLAKY = """
package scripted;

import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.errors.RetriableException;
import org.apache.kafka.connect.transforms.Transformation;

public class Flaky<R extends ConnectRecord<R>> implements Transformation<R> {
    private int times;
    private int calls;

    public void configure(Map<String, ?> given) {
        times = Integer.parseInt((String) given.get("times"));
    }

    public R apply(R record) {
        if (++calls <= times) {
            throw new RetriableException("try " + calls);
        }
        return record.newRecord(
            record.topic(), record.kafkaPartition(), record.keySchema(), record.key(),
            record.valueSchema(), record.value() + " after " + calls, record.timestamp());
    }

    public ConfigDef config() {
        return new ConfigDef().define("times", ConfigDef.Type.INT, ConfigDef.Importance.HIGH, "");
    }

    public void close() { }
}
"""


def write_scripted_plugin(folder: Path) -> Path:
    """Write a folder with the jar of both."""
    return write_plugin(folder, {SOURCE: _SCRIPTED_SOURCE, FLAKY: _FLAKY}, _SERVICES)
