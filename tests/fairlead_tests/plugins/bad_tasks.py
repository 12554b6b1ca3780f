"""Tasks of Connect that do what no task should, as long as a file is there that they look for.

`does` has the method and what happens in it, such as `poll exits`; `while` is the path of the file,
without which a task counts records up, or takes them.
"""

from pathlib import Path
from typing import Final

from fairlead_tests.plugins.bad_plugin import write_plugin

SOURCE: Final = "bad.BadSource"
SINK: Final = "bad.BadSink"
_KINDS: Final = ("source", "sink")

_DOING: Final = """
package bad;

import java.io.File;
import java.util.*;

/** What a method does beside its work. */
final class Doing {
    private static final List<Object> KEPT = new ArrayList<>();
    private final Map<String, String> config;
    private int calls;

    Doing(Map<String, String> config) { this.config = config; }

    void in(String method) {
        String[] does = config.getOrDefault("does", "").split(" ", 2);
        if (!does[0].equals(method) || !new File(config.get("while")).exists()) return;
        switch (does[1]) {
            case "blocks": block(); break;
            case "spins": while (new File(config.get("while")).exists()) Math.random(); break;
            case "throws": throw new IllegalStateException("no such luck");
            case "throws later":
                if (++calls > 3) throw new IllegalStateException("out of luck");
                break;
            case "exits": System.exit(7); break;
            case "halts": Runtime.getRuntime().halt(8); break;
            case "fills": while (true) KEPT.add(new long[1 << 20]);
            case "prints": System.out.println("{\\"id\\": 1, \\"answer\\": 0}"); break;
            case "leaks": new Thread(this::log, "leaked").start(); break;
            default: throw new IllegalArgumentException(does[1]);
        }
    }

    private void log() {
        org.slf4j.LoggerFactory.getLogger(Doing.class).info("a thread that was left behind");
        block();
    }

    void block() {
        while (new File(config.get("while")).exists()) {
            try {
                Thread.sleep(50);
            } catch (InterruptedException ignored) { }
        }
    }
}
"""

_CONNECTOR: Final = """
package bad;

import java.util.*;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.connector.Task;

public class BadSource extends org.apache.kafka.connect.source.SourceConnector {
    private Map<String, String> config;

    public ConfigDef config() { return new ConfigDef(); }
    public String version() { return "1.0"; }
    public void start(Map<String, String> given) {
        config = given;
        new Doing(config).in("connector");
    }
    public Class<? extends Task> taskClass() { return BadSourceTask.class; }
    public List<Map<String, String>> taskConfigs(int most) {
        new Doing(config).in("taskConfigs");
        return Collections.nCopies(most, config);
    }
    public void stop() { }
}
"""

_SOURCE_TASK: Final = """
package bad;

import java.util.*;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.source.*;

public class BadSourceTask extends SourceTask {
    private Map<String, String> config;
    private Doing doing;
    private long count;

    public String version() { return "1.0"; }
    public void start(Map<String, String> given) {
        config = given;
        doing = new Doing(given);
        doing.in("start");
    }
    public List<SourceRecord> poll() throws InterruptedException {
        doing.in("poll");
        Thread.sleep(20);
        return List.of(new SourceRecord(Map.of("of", config.get("name")), Map.of("at", ++count),
            config.get("topic"), Schema.STRING_SCHEMA, Long.toString(count)));
    }
    public void stop() { doing.in("stop"); }
}
"""

_SINK_TASK: Final = """
package bad;

import java.util.*;
import org.apache.kafka.connect.sink.*;

public class BadSinkTask extends SinkTask {
    private Doing doing;

    public String version() { return "1.0"; }
    public void start(Map<String, String> given) {
        doing = new Doing(given);
        doing.in("start");
    }
    public void put(Collection<SinkRecord> records) {
        if (!records.isEmpty()) doing.in("put");
    }
    public void stop() { doing.in("stop"); }
}
"""


def write_bad_tasks(folder: Path, package: str = "bad") -> Path:
    """Write a folder with one jar of both connectors, in a package of Java."""
    sink = _CONNECTOR.replace("BadSource", "BadSink").replace("source.SourceC", "sink.SinkC")
    sources = {
        "bad.Doing": _DOING,
        SOURCE: _CONNECTOR,
        "bad.BadSourceTask": _SOURCE_TASK,
        SINK: sink,
        "bad.BadSinkTask": _SINK_TASK,
    }
    services = {
        f"org.apache.kafka.connect.{kind}.{kind.title()}Connector": [name]
        for kind, name in zip(_KINDS, (SOURCE, SINK), strict=True)
    }

    def moved(text: str) -> str:
        return text.replace("bad.", f"{package}.").replace("package bad;", f"package {package};")

    return write_plugin(
        folder,
        {moved(name): moved(source) for name, source in sources.items()},
        {name: [*map(moved, classes)] for name, classes in services.items()},
    )
