"""A config provider of Connect whose values are good for some time only.

A path is a file of properties. Its key `ttl` says for how many milliseconds all others are good;
without it they are good for ever.
"""

from pathlib import Path

from fairlead_tests.plugins.bad_plugin import write_plugin

PROVIDER = "leased.LeasedProvider"
_JAVA = """
package leased;

import java.io.*;
import java.nio.file.*;
import java.util.*;
import org.apache.kafka.common.config.*;
import org.apache.kafka.common.config.provider.ConfigProvider;

public class LeasedProvider implements ConfigProvider {
    public void configure(Map<String, ?> config) { }

    public ConfigData get(String path) {
        Properties found = new Properties();
        try (Reader reader = Files.newBufferedReader(Path.of(path))) {
            found.load(reader);
        } catch (IOException error) {
            throw new UncheckedIOException(error);
        }
        Map<String, String> values = new HashMap<>();
        found.forEach((key, value) -> values.put((String) key, (String) value));
        String ttl = values.remove("ttl");
        return new ConfigData(values, ttl == null ? null : Long.valueOf(ttl));
    }

    public ConfigData get(String path, Set<String> keys) {
        ConfigData all = get(path);
        all.data().keySet().retainAll(keys);
        return all;
    }

    public void close() { }
}
"""


def write_leased_provider(folder: Path) -> Path:
    """Write a folder with its jar."""
    services = {"org.apache.kafka.common.config.provider.ConfigProvider": [PROVIDER]}
    return write_plugin(folder, {PROVIDER: _JAVA}, services)
