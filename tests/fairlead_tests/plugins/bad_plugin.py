"""A plugin of Connect that does what no plugin should, compiled by the tests."""

import subprocess
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

from fairlead_tests.plugins.installed import fetched, installation, java_here

NAME = "bad.BadSinkConnector"
ECJ = "org.eclipse.jdt:ecj:3.43.0"
SERVICE = "org.apache.kafka.connect.sink.SinkConnector"
SOURCE = """
package bad;

import java.util.*;
import org.apache.kafka.common.config.*;
import org.apache.kafka.connect.connector.Task;
import org.apache.kafka.connect.sink.SinkConnector;

public class BadSinkConnector extends SinkConnector {
    private static final List<Object> kept = new ArrayList<>();

    public Config validate(Map<String, String> config) {
        switch (config.getOrDefault("does", "")) {
            case "blocks":
                block();
                break;
            case "throws":
                throw new IllegalStateException("no such luck");
            case "breaks":
                throw new NoClassDefFoundError("com/example/Missing");
            case "is too new":
                throw new UnsupportedClassVersionError(
                    "com/example/New has been compiled by a more recent version of the Java"
                    + " Runtime (class file version 69.0), this version of the Java Runtime only"
                    + " recognizes class file versions up to 61.0");
            case "exits":
                System.exit(7);
                break;
            case "halts":
                Runtime.getRuntime().halt(8);
                break;
            case "fills":
                while (true) kept.add(new long[1 << 20]);
            case "prints":
                System.out.println("{\\"id\\": 1, \\"answer\\": \\"not an answer\\"}");
                break;
            case "is silent":
                ConfigValue value = new ConfigValue(
                    "plain", null, Arrays.asList("a", null), new ArrayList<>());
                value.addErrorMessage(null);
                return new Config(List.of(value));
            default:
        }
        return super.validate(config);
    }

    private static void block() {
        try {
            new java.util.concurrent.CountDownLatch(1).await();
        } catch (InterruptedException end) {
            throw new IllegalStateException(end);
        }
    }

    public ConfigDef config() {
        return new ConfigDef()
            .define("KEY", ConfigDef.Type.STRING, "", ConfigDef.Importance.LOW, "A key.")
            .define("plain", ConfigDef.Type.STRING, null, ConfigDef.Importance.LOW, null);
    }

    public String version() { return "1.0"; }
    public void start(Map<String, String> config) { }
    public Class<? extends Task> taskClass() { return null; }
    public List<Map<String, String>> taskConfigs(int most) { return List.of(); }
    public void stop() { }
}
"""


def write_bad_plugin(folder: Path, key: str = "does") -> Path:
    """Write a folder with one jar of the plugin, whose config has one key."""
    (compiler,) = fetched(ECJ)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as work:
        source = Path(work, "bad/BadSinkConnector.java")
        source.parent.mkdir()
        source.write_text(SOURCE.replace("KEY", key))
        class_path = ":".join(map(str, installation().class_path))
        command = [str(java_here().command), "-jar", str(compiler), "-17", "-nowarn"]
        command += ["-classpath", class_path, "-d", f"{work}/classes", str(source)]
        subprocess.run(command, check=True, timeout=300)
        with zipfile.ZipFile(folder / "bad.jar", "w") as jar:
            jar.write(f"{work}/classes/bad/BadSinkConnector.class", "bad/BadSinkConnector.class")
            jar.writestr(f"META-INF/services/{SERVICE}", NAME)
    return folder
