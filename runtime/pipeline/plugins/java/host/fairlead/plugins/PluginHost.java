package fairlead.plugins;

import com.fasterxml.jackson.core.type.TypeReference;
import com.fasterxml.jackson.databind.JsonNode;
import java.io.IOException;
import java.net.StandardProtocolFamily;
import java.net.UnixDomainSocketAddress;
import java.nio.channels.SocketChannel;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Map;
import org.apache.kafka.connect.runtime.isolation.Plugins;
import org.apache.kafka.connect.storage.StringConverter;

/** A JVM that has plugins of Kafka Connect, and does with them what another process asks for. */
public final class PluginHost {
    private static final TypeReference<Map<String, String>> TEXTS = new TypeReference<>() {
    };

    private Plugins plugins;
    private Map<String, String> properties;
    private Validation validation;

    private PluginHost() {
    }

    /** Takes the path of the socket that the other process listens on. */
    public static void main(String[] arguments) throws IOException {
        SocketChannel channel = SocketChannel.open(StandardProtocolFamily.UNIX);
        channel.connect(UnixDomainSocketAddress.of(arguments[0]));
        Runtime.getRuntime().addShutdownHook(new Thread(PluginHost::tellExit));
        try {
            new Link(channel, new PluginHost()::answer).serve();
        } finally {
            Runtime.getRuntime().halt(0); // plugins leave threads behind, and hooks that wait for them
        }
    }

    /** Names, as the last line of the log, the code that ends this JVM: it waits where it has called for that. */
    private static void tellExit() {
        Thread.getAllStackTraces().values().stream()
            .filter(frames -> Arrays.stream(frames).anyMatch(PluginHost::isExit))
            .forEach(frames -> System.err.println("System.exit was called at " + Link.locate(frames)));
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
        Validation asked = validation();
        Plugins.compareAndSwapLoaders(plugins.delegatingLoader());
        return switch (question) {
            case "keys" -> asked.keys(with.get("plugin").asText(), with.get("version").asText());
            case "validate" -> asked.validate(texts(with, "config"), with.get("ms").asLong());
            default -> throw new IllegalArgumentException(question + " is no question");
        };
    }

    /** Loads the plugins that the properties of a worker name; the answer tells whose classes these are. */
    private synchronized Map<String, String> begin(Map<String, String> given) {
        properties = given;
        plugins = new Plugins(given);
        // What knows the version has another package in Kafka 4.4; its own plugins have the version as theirs.
        String connect = new StringConverter().version();
        return Map.of("connect", connect, "java", System.getProperty("java.version"));
    }

    private synchronized Validation validation() {
        if (plugins == null) {
            throw new IllegalStateException("the host has not begun");
        }
        if (validation == null) {
            validation = new Validation(plugins, properties);
        }
        return validation;
    }

    private static Map<String, String> texts(JsonNode with, String name) {
        return Link.JSON.convertValue(with.get(name), TEXTS);
    }
}
