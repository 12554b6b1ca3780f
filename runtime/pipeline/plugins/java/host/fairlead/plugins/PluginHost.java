package fairlead.plugins;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.stream.Stream;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.runtime.TargetState;
import org.apache.kafka.connect.runtime.distributed.DistributedConfig;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.runtime.rest.entities.ConnectorOffsets;
import org.apache.kafka.connect.storage.StringConverter;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** A JVM that has plugins of Kafka Connect, and does with them what another process asks for. */
public final class PluginHost {
    private static final TypeReference<Map<String, String>> TEXTS = new TypeReference<>() {
    };

    private static final TypeReference<Set<Map<String, Object>>> PARTITIONS = new TypeReference<>() {
    };

    private static final String OF_QUESTION = "question-thread-";

    private Plugins plugins;
    private Map<String, String> properties;
    private Validation validation;
    /** Of connectors whose records the other process takes. */
    private Validation batchValidation;
    /** Of what needs Kafka. */
    private CompletableFuture<ConnectWorker> work;
    /** Of what does not. */
    private ConnectWorker batchWork;
    private Zombies zombies;
    private Link link;
    private final Meters meters = new Meters();

    private PluginHost() {
    }

    /** Takes the path of the socket that the other process listens on. */
    public static void main(String[] arguments) throws IOException {
        SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        channel.connect(UnixDomainSocketAddress.of(arguments[0]));
        Runtime.getRuntime().addShutdownHook(new Thread(PluginHost::tellExit));
        try {
            PluginHost host = new PluginHost();
            host.link = new Link(channel, host::answer);
            host.link.serve();
        } finally {
            Runtime.getRuntime().halt(0); // plugins leave threads behind, and hooks that wait for them
        }
    }

    /** Names, as the last line of the log, the code that ends this JVM: it waits where it has called for that. */
    private static void tellExit() {
        Thread.getAllStackTraces().entrySet().stream()
            .filter(each -> Arrays.stream(each.getValue()).anyMatch(PluginHost::isExit))
            .forEach(each -> System.err.println("System.exit was called at "
                + Link.locate(each.getValue()) + by(each.getKey().getName())));
    }

    /** Names a thread for a connector or a task: these have its name in theirs. */
    private static String by(String thread) {
        return Stream.of("task-thread-", "connector-thread-", OF_QUESTION).anyMatch(thread::startsWith)
            ? " by " + thread
            : "";
    }

    private static boolean isExit(StackTraceElement frame) {
        return frame.getClassName().equals("java.lang.Runtime") && frame.getMethodName().equals("exit");
    }

    private Object answer(String question, JsonNode with) throws Throwable {
        if (question.equals("begin")) {
            return begin(texts(with, "properties"));
        }
        if (question.equals("scan")) {
            return Scan.of(Path.of(with.get("folder").asText()));
        }
        if (question.equals("metrics")) {
            return meters.read(with.get("all").asBoolean());
        }
        if (question.equals("loggers")) {
            return Levels.read();
        }
        if (question.equals("levels")) {
            Levels.set(texts(with, "levels"));
            return "";
        }
        require();
        Plugins.compareAndSwapLoaders(plugins.delegatingLoader());
        return switch (question) {
            case "keys" -> validation(with).keys(with.get("plugin").asText(), with.get("version").asText());
            case "validate" ->
                validation(with).validate(texts(with, "config"), with.get("ms").asLong());
            case "work" -> work(with.get("name").asText(), with.get("ms").asLong(), with.get("tasks"));
            default -> answerAsWorker(question, with);
        };
    }

    /** Has the thread tell whose code it runs: some of a connector's and of its tasks' runs on this one. */
    private Object answerAsWorker(String question, JsonNode with) throws Throwable {
        String name = name(with);
        Thread thread = Thread.currentThread();
        String before = thread.getName();
        thread.setName(OF_QUESTION + name);
        try {
            return answerForConnector(question, with);
        } finally {
            thread.setName(before);
        }
    }

    private Object answerForConnector(String question, JsonNode with) throws Throwable {
        switch (question) {
            case "start connector":
                return worker(with).startConnector(name(with), texts(with, "config"));
            case "exactly once":
                return worker(with).exactlyOnce(texts(with, "config"));
            case "task configs":
                return worker(with).taskConfigs(name(with), texts(with, "config"));
            case "stop connector":
                return worker(with).stopConnector(with.get("connector").asText());
            case "start task":
                ConnectorTaskId id = new ConnectorTaskId(name(with), with.get("task").asInt());
                int tasks = with.get("tasks").asInt();
                worker(with).startTask(
                    id, texts(with, "config"), texts(with, "own"), tasks, target(with), with);
                return "";
            case "feed":
                worker(with).feed(with.get("connector").asText(), with.get("task").asInt(), with);
                return "";
            case "turn task":
                worker(with).turnTask(with.get("connector").asText(), with.get("task").asInt(), target(with));
                return "";
            case "leave":
                worker(with).leave(texts(with, "config"), with.get("task").asInt());
                return "";
            case "stop task":
                return worker(with).stopTask(with.get("connector").asText(), with.get("task").asInt());
            case "committed":
                worker(with).confirm(
                    name(with), with.get("task").asInt(), with.get("number").asLong(), with.path("places"));
                return "";
            case "passed":
                worker(with).pass(name(with), with.get("task").asInt(), with.get("number").asLong());
                return "";
            case "busy":
                return worker(with).busy(with.get("connector").asText(), with.get("task").asInt());
            case "fences":
                return worker(with).fences(texts(with, "config"));
            case "fence":
                worker(with).fence(texts(with, "config"), with.get("tasks").asInt());
                return "";
            case "fence former":
                worker(with).fenceFormer(texts(with, "config"));
                return "";
            case "offsets":
                return worker(with).offsets(texts(with, "config"));
            case "alter offsets":
                ConnectorOffsets offsets = Link.JSON.convertValue(with.get("offsets"), ConnectorOffsets.class);
                return worker(with).modifyOffsets(texts(with, "config"), offsets, with.get("tasks").asInt());
            case "reset offsets":
                return worker(with).modifyOffsets(texts(with, "config"), null, with.get("tasks").asInt());
            case "ask for offsets":
                ConnectorOffsets wanted = Link.JSON.convertValue(with.get("offsets"), ConnectorOffsets.class);
                return worker(with).askForOffsets(
                    texts(with, "config"), wanted, Link.JSON.convertValue(with.get("partitions"), PARTITIONS));
            default:
                throw new IllegalArgumentException(question + " is no question");
        }
    }

    /** Begins to work for a group, and returns what that waits for: Kafka may be away. "" if it works. */
    private String work(String name, long milliseconds, JsonNode tasks) throws Throwable {
        CompletableFuture<ConnectWorker> begun;
        synchronized (this) {
            if (zombies == null) {
                zombies = new Zombies(properties);
            }
            List<ConnectorTaskId> given = new ArrayList<>();
            tasks.forEach(each -> given.add(new ConnectorTaskId(each.get(0).asText(), each.get(1).asInt())));
            zombies.end(given);
            if (work == null || work.isCompletedExceptionally()) {
                WorkerFile.publish(properties);
                work = CompletableFuture.supplyAsync(
                    () -> ConnectWorker.online(plugins, properties, name, link),
                    task -> new Thread(task, "begin").start());
            }
            begun = work;
        }
        try {
            begun.get(milliseconds, TimeUnit.MILLISECONDS);
            return "";
        } catch (TimeoutException waits) {
            return "no broker has answered yet";
        } catch (ExecutionException failed) {
            Throwable cause = failed.getCause();
            if (cause instanceof ConfigException) {
                throw cause;
            }
            Throwable first = cause.getCause() == null ? cause : cause.getCause();
            return cause.getMessage() + (first == cause ? "" : ": " + first.getMessage());
        }
    }

    private ConnectWorker worker() {
        CompletableFuture<ConnectWorker> begun = work;
        if (begun == null || !begun.isDone()) {
            throw new IllegalStateException("the host does not work yet");
        }
        return begun.join();
    }

    private ConnectWorker worker(JsonNode with) {
        return with.path("batches").asBoolean() ? batchWorker() : worker();
    }

    private synchronized ConnectWorker batchWorker() {
        if (batchWork == null) {
            batchWork = ConnectWorker.offline(plugins, properties, "batches", link);
        }
        return batchWork;
    }

    private synchronized void require() {
        if (plugins == null) {
            throw new IllegalStateException("the host has not begun");
        }
    }

    /** Loads the plugins that the properties of a worker name; the answer tells whose classes these are. */
    private synchronized Map<String, String> begin(Map<String, String> given) {
        properties = given;
        plugins = new Plugins(given);
        // What knows the version has another package in Kafka 4.4; its own plugins have the version as theirs.
        String connect = new StringConverter().version();
        return Map.of("connect", connect, "java", System.getProperty("java.version"));
    }

    /** Returns what validates the configs of connectors: those that feed other sinks than Kafka are asked for more. */
    private synchronized Validation validation(JsonNode with) {
        if (!with.path("batches").asBoolean()) {
            if (validation == null) {
                validation = new Validation(plugins, properties, link);
            }
            return validation;
        }
        if (batchValidation == null) {
            Map<String, String> own = new HashMap<>(properties);
            own.put(DistributedConfig.EXACTLY_ONCE_SOURCE_SUPPORT_CONFIG, "enabled"); // fairlead's log supports it
            batchValidation = new Validation(plugins, own, link);
        }
        return batchValidation;
    }

    /** Returns what a connector is called here: a connector with two plugins is there by two names. */
    private static String name(JsonNode with) {
        return with.path("connector").asText(with.path("config").path("name").asText());
    }

    private static TargetState target(JsonNode with) {
        return with.get("paused").asBoolean() ? TargetState.PAUSED : TargetState.STARTED;
    }

    private static Map<String, String> texts(JsonNode with, String name) {
        return Link.JSON.convertValue(with.get(name), TEXTS);
    }
}
