package fairlead.plugins;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import org.apache.kafka.connect.runtime.isolation.PluginClassLoader;
import org.apache.kafka.connect.runtime.isolation.PluginDesc;
import org.apache.kafka.connect.runtime.isolation.PluginScanResult;
import org.apache.kafka.connect.runtime.isolation.PluginSource;
import org.apache.kafka.connect.runtime.isolation.PluginUtils;
import org.apache.kafka.connect.runtime.isolation.ReflectionScanner;
import org.apache.kafka.connect.runtime.isolation.ServiceLoaderScanner;

/** Finds all plugins of a folder or a jar, also those that no service file declares (KIP-898). */
final class Scan {
    /** A class; {@code service} is the interface that its service file is named by, if it is declared. */
    record Found(String type, String name, String version, String service, boolean declared) {
    }

    private Scan() {
    }

    static List<Found> of(Path folder) throws IOException {
        PluginSource source =
            PluginUtils.isolatedPluginSource(folder, PluginUtils.class.getClassLoader(), PluginClassLoader::new);
        PluginScanResult declared = new ServiceLoaderScanner().discoverPlugins(Set.of(source));
        PluginScanResult present = new ReflectionScanner().discoverPlugins(Set.of(source));
        Set<String> names = new HashSet<>();
        declared.forEach(each -> names.add(name(each)));
        List<Found> found = new ArrayList<>();
        present.forEach(each -> found.add(new Found(
            each.typeName(),
            each.className(),
            each.version(),
            each.type().superClass().getName(),
            names.contains(name(each)))));
        return found;
    }

    private static String name(PluginDesc<?> plugin) {
        return plugin.typeName() + " " + plugin.className();
    }
}
