package fairlead.plugins;

import java.util.Comparator;
import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.connect.runtime.Worker;
import org.apache.logging.log4j.Level;
import org.apache.logging.log4j.LogManager;
import org.apache.logging.log4j.core.config.Configurator;

/** The levels of this JVM's loggers, those of plugins among them. */
final class Levels {
    private static final String ROOT = "root";
    /** What is above others comes before them. */
    private static final Comparator<String> DOWNWARDS =
        Comparator.comparing((String name) -> !name.equals(ROOT)).thenComparing(Comparator.naturalOrder());

    private Levels() {
    }

    /** Returns the level of each logger there is. */
    static Map<String, String> read() {
        Map<String, String> levels = new TreeMap<>();
        levels.put(ROOT, LogManager.getRootLogger().getLevel().name());
        LogManager.getContext(Worker.class.getClassLoader(), false).getLoggerRegistry().getLoggers().stream()
            .filter(each -> !each.getName().isEmpty())
            .forEach(each -> levels.put(each.getName(), each.getLevel().name()));
        return levels;
    }

    /** Sets levels, each for a logger and all below it; loggers that none is for have their first ones again. */
    static synchronized void set(Map<String, String> wanted) {
        Configurator.reconfigure();
        Map<String, String> ordered = new TreeMap<>(DOWNWARDS);
        ordered.putAll(wanted);
        ordered.forEach((name, level) -> Configurator.setAllLevels(
            name.equals(ROOT) ? LogManager.ROOT_LOGGER_NAME : name, Level.valueOf(level)));
    }
}
